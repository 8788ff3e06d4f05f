package projection

import (
	"context"
	"slices"
	"strings"

	"convls/protocol"
	"convls/store"
)

const (
	// maxTips bounds the branches that a hit names.
	maxTips = 10
	// snippetBytes is how much text a hit shows on each side of what was found.
	snippetBytes = 80
)

// Search looks for nodes whose text has all words of query, without regard to
// case, newest first, in one session or, newest activity first, in all. It reads
// the contents as they are: there is no index, and what it costs grows with what
// it reads.
func Search(ctx context.Context, s *store.Store, query, sessionID string, limit int) (*protocol.SearchResult, error) {
	words := strings.Fields(strings.ToLower(query))
	if len(words) == 0 {
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "the query is empty: give words to look for")
	}
	res := &protocol.SearchResult{Hits: []protocol.SearchHit{}}
	var ids []string
	if sessionID != "" {
		ids = []string{sessionID}
	} else {
		listed, _, err := s.Sessions(ctx, store.Filter{})
		if err != nil {
			return nil, err
		}
		for _, l := range listed {
			ids = append(ids, l.Info.ID)
		}
	}
	for _, id := range ids {
		sess, err := s.Session(id)
		if err != nil {
			if sessionID != "" {
				return nil, err
			}
			continue // one damaged session must not hide what is in the others
		}
		if err := searchSession(ctx, sess, words, limit, res); err != nil {
			return nil, err
		}
		if res.Incomplete {
			break
		}
	}
	return res, nil
}

func searchSession(ctx context.Context, sess *store.Session, words []string, limit int, res *protocol.SearchResult) error {
	r, err := sess.Reader()
	if err != nil {
		return err
	}
	defer r.Close()
	info, err := r.Info()
	if err != nil {
		return err
	}
	var leaves []store.Leaf
	for seq := r.State.Next - 1; seq >= store.Root; seq-- {
		if err := ctx.Err(); err != nil {
			return err
		}
		content, err := r.Content(seq)
		if err != nil {
			continue // deleted, or damaged
		}
		text := TextOf(slices.Concat(content.Prompt, content.Parts))
		at := find(text, words)
		if at < 0 {
			continue
		}
		if len(res.Hits) == limit {
			res.Incomplete = true
			return nil
		}
		if leaves == nil {
			if leaves, err = r.Leaves(); err != nil {
				return err
			}
		}
		hit, err := hitOf(r, seq, text, at, leaves)
		if err != nil {
			return err
		}
		hit.SessionID, hit.Title = sess.ID(), info.Title
		res.Hits = append(res.Hits, hit)
	}
	return nil
}

// find returns where the first of the words stands in text, -1 if one of them
// does not.
func find(text string, words []string) int {
	lower := strings.ToLower(text)
	at := -1
	for _, w := range words {
		i := strings.Index(lower, w)
		if i < 0 {
			return -1
		}
		if at < 0 || i < at {
			at = i
		}
	}
	return at
}

func hitOf(r *store.Reader, seq store.Seq, text string, at int, leaves []store.Leaf) (protocol.SearchHit, error) {
	s, err := r.Skeleton(seq)
	if err != nil {
		return protocol.SearchHit{}, err
	}
	hit := protocol.SearchHit{NodeID: s.ID, Kind: s.Kind, Snippet: snippet(text, at), Tips: []string{}}
	owner, err := r.Owner(s)
	if err != nil {
		return hit, err
	}
	for _, l := range leaves {
		if len(hit.Tips) == maxTips || l.Seq < owner.Seq {
			continue
		}
		tip, err := r.Skeleton(l.Seq)
		if err != nil {
			return hit, err
		}
		if on, err := r.IsAncestor(owner, tip); err != nil {
			return hit, err
		} else if on {
			hit.Tips = append(hit.Tips, tip.ID)
		}
	}
	return hit, nil
}

// snippet returns the text around byte at. Lower case can have another length
// than what it was made from, so at may be a little off, and is brought inside.
func snippet(text string, at int) string {
	at = min(at, len(text))
	from := at - min(at, snippetBytes)
	for from > 0 && text[from]&0xC0 == 0x80 {
		from--
	}
	part := store.Clip(text[from:], at-from+snippetBytes)
	out := strings.Join(strings.Fields(part), " ")
	if from > 0 {
		out = "…" + out
	}
	if from+len(part) < len(text) {
		out += "…"
	}
	return out
}
