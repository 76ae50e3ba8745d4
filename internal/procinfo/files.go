package procinfo

import (
	"cmp"
	"slices"
)

func sortFiles(files []File) {
	slices.SortFunc(files, func(a, b File) int { return cmp.Compare(a.FD, b.FD) })
}
