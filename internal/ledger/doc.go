// Package ledger holds the rules of the coordination ledger: who should do what, who
// holds it, and what proof exists.
//
// Every rule is a function of values: records, arguments and now go in, a new record or an
// error with a code of [fault] comes out. The package reads no clock, opens no file and
// knows no table; ledgersql stores its records, coord runs its rules in transactions.
//
// An assignment is coordination, never execution: nothing here starts, watches or ends
// work, opens a locator, or grants a permission.
package ledger
