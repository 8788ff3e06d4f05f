package protocol

import "testing"

func TestTextRangeLines(t *testing.T) {
	for _, row := range []struct {
		startLine, endLine, endCharacter, first, last uint32
	}{
		{1, 4, 0, 2, 4}, // lines 2 to 4, whole
		{1, 3, 7, 2, 4},
		{0, 1, 0, 1, 1},
		{5, 5, 0, 6, 6}, // a place
	} {
		r := TextRange{Start: Position{Line: row.startLine}, End: Position{Line: row.endLine, Character: row.endCharacter}}
		if first, last := r.Lines(); first != row.first || last != row.last {
			t.Errorf("%+v is lines %d to %d, want %d to %d", r, first, last, row.first, row.last)
		}
	}
}
