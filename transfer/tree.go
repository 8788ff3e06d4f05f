package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"convls/protocol"
	"convls/store"
)

// treeMessage is a message of Open-Assistant's exports (ExportMessageNode), or a
// line of a tree export (ExportMessageTree), which has the first message as prompt.
type treeMessage struct {
	MessageID string         `json:"message_id"`
	ParentID  string         `json:"parent_id"`
	TreeID    string         `json:"message_tree_id"`
	Text      string         `json:"text"`
	Role      string         `json:"role"`
	Created   string         `json:"created_date"`
	Rank      *int64         `json:"rank"`
	Replies   []*treeMessage `json:"replies"`
	Prompt    *treeMessage   `json:"prompt"`
	// Rest goes into the node's metadata as it is: language, labels, review, deleted.
	Rest map[string]protocol.Raw `json:",embed"`

	line int64
}

// treeLines imports trees that take a line each, or messages that do.
func (im *importer) treeLines(ctx context.Context) error {
	flat := &flatMessages{}
	for {
		line, err := im.line()
		f, isFault := errors.AsType[*fault](err)
		switch {
		case errors.Is(err, io.EOF):
			return im.flat(ctx, flat)
		case isFault:
			im.skip(f)
			continue
		case err != nil:
			return err
		}
		m := &treeMessage{line: im.lines.number}
		if err := unmarshal(line, m); err != nil {
			if truncated(line) {
				im.skip(faultf(m.line, "the last line is torn: %v", err))
			} else {
				im.skip(faultf(m.line, "the line can not be read: %v", err))
			}
			// Without the lost message the tree that it belongs to can not be told: its
			// children will be found to lack their parent.
			continue
		}
		if err := im.treeValue(ctx, m, flat); err != nil {
			return err
		}
	}
}

// treeValues imports JSON values that may be longer than a line: an array of trees
// or messages, or one tree that was printed nicely.
func (im *importer) treeValues(ctx context.Context) error {
	if _, err := im.lines.next(); err != nil {
		return err
	}
	flat := &flatMessages{}
	// Each value is checked strictly by itself, so that one refuses no other.
	d := jsontext.NewDecoder(im.lines.rest(), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	for n := 1; ; n++ {
		raw, err := nextValue(d)
		if errors.Is(err, io.EOF) {
			return im.flat(ctx, flat)
		}
		if cerr := ctx.Err(); cerr != nil {
			return cerr
		}
		if err != nil {
			// Where the next value begins nobody can tell.
			im.skip(faultf(0, "value %d and what follows can not be read: %v", n, err))
			return im.flat(ctx, flat)
		}
		im.tell(false)
		m := &treeMessage{}
		if err := unmarshal(raw, m); err != nil {
			im.skip(faultf(0, "value %d can not be read: %v", n, err))
			continue
		}
		if err := im.treeValue(ctx, m, flat); err != nil {
			return err
		}
	}
}

// nextValue returns the next object, in an array or not.
func nextValue(d *jsontext.Decoder) (jsontext.Value, error) {
	for {
		kind := d.PeekKind()
		if kind != ']' && (kind != '[' || d.StackDepth() > 0) {
			return d.ReadValue()
		}
		if _, err := d.ReadToken(); err != nil {
			return nil, err
		}
	}
}

// treeValue imports a tree, or keeps a single message for when all are there.
func (im *importer) treeValue(ctx context.Context, m *treeMessage, flat *flatMessages) error {
	if m.Prompt == nil && len(m.Replies) > 0 && m.ParentID == "" {
		m = &treeMessage{TreeID: m.TreeID, Prompt: m, line: m.line}
	}
	if m.Prompt == nil {
		if m.MessageID == "" {
			im.skip(faultf(m.line, "it is neither a message nor a tree of messages"))
			return nil
		}
		flat.add(m)
		return nil
	}
	messages, parents, f := unfold(m)
	if f != nil {
		f.id = m.TreeID
		im.skip(f)
		return nil
	}
	entry, err := im.putTree(ctx, &tree{id: m.TreeID, line: m.line, messages: messages, parents: parents, rest: m.Rest})
	if f, ok := errors.AsType[*fault](err); ok && f.id == "" {
		f.id = m.TreeID
	}
	return im.stored(entry, err)
}

// unfold lists the messages of a nested tree, each before its replies, without
// recursion.
func unfold(m *treeMessage) ([]*treeMessage, []int, *fault) {
	type visit struct {
		m      *treeMessage
		parent int
	}
	var messages []*treeMessage
	var parents []int
	stack := []visit{{m.Prompt, none}}
	for len(stack) > 0 {
		v := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if v.m == nil {
			return nil, nil, faultf(m.line, "a reply is null")
		}
		if v.parent != none && v.m.ParentID != "" && v.m.ParentID != messages[v.parent].MessageID {
			return nil, nil, faultf(m.line, "message %q stands below %q and names another parent", v.m.MessageID, messages[v.parent].MessageID)
		}
		at := len(messages)
		messages, parents = append(messages, v.m), append(parents, v.parent)
		for _, r := range slices.Backward(v.m.Replies) {
			stack = append(stack, visit{r, at})
		}
	}
	return messages, parents, nil
}

// tree is a tree of messages, parents before their children.
type tree struct {
	id       string
	line     int64
	messages []*treeMessage
	parents  []int
	rest     map[string]protocol.Raw
}

// putTree stores a tree as a session.
func (im *importer) putTree(ctx context.Context, t *tree) (protocol.ImportedEntry, error) {
	records := make([]*nodeRecord, len(t.messages))
	root := nodeRecord{ID: store.NewID(""), Metadata: t.rest}
	used := map[string]bool{root.ID: true}
	created := time.Time{}
	for i, m := range t.messages {
		n, err := im.treeNode(t, m)
		if err != nil {
			return protocol.ImportedEntry{}, err
		}
		if used[n.ID] || !validID(n.ID) {
			n.ID = store.NewID("")
		}
		used[n.ID] = true
		n.Predecessor = root.ID
		if p := t.parents[i]; p != none {
			n.Predecessor = records[p].ID
		}
		if i == 0 {
			created = n.CreatedAt
		}
		records[i] = n
	}
	d := &draft{line: t.line, root: root, want: uint64(len(records)) + 1, head: root.ID,
		info: store.Info{ID: t.id, Policy: policyRolling, CreatedAt: created},
		nodes: func(yield func(*nodeRecord, error) bool) {
			for _, n := range records {
				if err := ctx.Err(); !yield(n, err) || err != nil {
					return
				}
			}
		}}
	if len(records) > 0 {
		d.head = records[t.best()].ID
		d.info.Title, d.titleFrom = titleOf(t.messages[0].Text), records[0].ID
	}
	return im.put(ctx, d)
}

func (im *importer) treeNode(t *tree, m *treeMessage) (*nodeRecord, error) {
	n := &nodeRecord{ID: m.MessageID, Status: protocol.StatusSealed, CreatedAt: timeOf(m.Created), Metadata: maps.Clone(m.Rest), line: m.line}
	if n.line == 0 {
		n.line = t.line
	}
	switch m.Role {
	case "prompter", "user":
		n.Kind = protocol.KindUser
	case "assistant":
		n.Kind = protocol.KindAssistant
	default:
		f := faultf(n.line, "message %q has the role %q: it is prompter or assistant", m.MessageID, m.Role)
		f.id = t.id
		return nil, f
	}
	if m.Text != "" {
		n.Content = []protocol.Part{{Type: protocol.PartText, Text: m.Text}}
	}
	if n.Metadata == nil {
		n.Metadata = map[string]protocol.Raw{}
	}
	if m.MessageID != "" {
		n.Metadata["message_id"] = quote(m.MessageID)
	}
	if m.Rank != nil {
		n.Metadata["rank"] = protocol.Raw(fmt.Sprint(*m.Rank))
	}
	im.count(n)
	return n, nil
}

// best returns the leaf at the end of the best-ranked replies: rank 0 is the best,
// messages without a rank come after those with one, the first written wins.
func (t *tree) best() int {
	children := make(map[int][]int, len(t.messages))
	for i, p := range t.parents {
		children[p] = append(children[p], i)
	}
	at := none
	for len(children[at]) > 0 {
		best := children[at][0]
		for _, c := range children[at][1:] {
			if r := t.messages[c].Rank; r != nil && (t.messages[best].Rank == nil || *r < *t.messages[best].Rank) {
				best = c
			}
		}
		at = best
	}
	return at
}
