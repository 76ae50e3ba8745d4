package outboxsql

// HotQueries maps the queries that run for every delivery to their arguments.
var HotQueries = map[string][]any{selectDelivery + whereDue: {"b", 1, 1}, selectNext: {"b"}}

// LegLimit is for tests of what Journeys leaves out.
const LegLimit = legLimit
