package config

import "strings"

// longestWord bounds the work of Nearest on outside input: nobody mistypes a word this long by accident.
const longestWord = 128

// Nearest gives the candidate that word was most probably meant to be, or "" when none is near enough. Case and the
// difference between '-', '_' and '.' count for little, other edits for one each; a third of the word may be wrong.
// Of equally near candidates the first wins.
func Nearest(word string, candidates []string) string {
	if word == "" || len(word) > longestWord {
		return ""
	}
	best, bestDistance := "", len(word)/3+1
	folded := fold(word)
	for _, candidate := range candidates {
		if len(candidate) > longestWord {
			continue
		}
		if d := distance(folded, fold(candidate)); d < bestDistance {
			best, bestDistance = candidate, d
		}
	}
	return best
}

func fold(s string) string {
	return strings.NewReplacer("-", ".", "_", ".").Replace(strings.ToLower(s))
}

// distance counts the insertions, deletions, replacements and swaps of neighbours that turn a into b (the optimal
// string alignment distance), over bytes.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
