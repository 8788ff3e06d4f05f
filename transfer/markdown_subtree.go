package transfer

import (
	"fmt"
	"slices"
	"strings"

	"convls/protocol"
	"convls/store"
)

// subtree writes what s called and what was not shown in its place, each with what
// it called in turn, without recursion.
func (m *markdown) subtree(s store.Skeleton, shown map[string]bool) error {
	stack := []store.Seq{}
	push := func(s store.Skeleton, chain bool) error {
		var next []store.Seq
		for seq, err := range m.Callees(s.Seq) {
			if err != nil {
				return err
			}
			next = append(next, seq)
		}
		if chain {
			for seq, err := range m.Children(s.Seq) {
				if err != nil {
					return err
				}
				next = append(next, seq)
			}
		}
		slices.Reverse(next)
		stack = append(stack, next...)
		return nil
	}
	if err := push(s, false); err != nil {
		return err
	}
	for len(stack) > 0 {
		seq := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if m.place[seq] != 0 {
			continue // the branch itself goes on there: it has its own place below
		}
		c, err := m.Skeleton(seq)
		if err != nil {
			return err
		}
		if !shown[c.ID] {
			if err := m.callee(c); err != nil {
				return err
			}
		}
		if err := push(c, c.Kind.OnChain()); err != nil {
			return err
		}
	}
	return nil
}

// callee writes a folded node: a tool with its call and its result, or another
// node that was called, or a notice.
func (m *markdown) callee(s store.Skeleton) error {
	c, err := settled(m.Reader, &s)
	if err != nil {
		return err
	}
	title, state := []string{string(s.Kind)}, []string{}
	var body []string
	for _, p := range c.Prompt {
		if p.Text != "" {
			body = append(body, fenced(p.Text, ""))
		}
	}
	for _, p := range c.Parts {
		switch p.Type {
		case protocol.PartToolCall:
			if p.Name != "" {
				title = append(title, p.Name)
			}
			if len(p.Arguments) > 0 {
				body = append(body, fenced(indented(p.Arguments), "json"))
			}
		case protocol.PartToolResult:
			if p.IsError {
				state = append(state, "error")
			}
			body = append(body, fenced(p.Text, ""))
		case protocol.PartImage:
			body = append(body, fmt.Sprintf("*image, %s, %d bytes*", escape(p.MIMEType), len(p.Data)))
		default:
			body = append(body, fenced(p.Text, ""))
		}
	}
	if s.Status != protocol.StatusSealed {
		state = append(state, string(s.Status))
	}
	if c.Error != nil {
		body = append(body, "*"+escape(c.Error.Message)+"*")
	}
	m.fold(strings.Join(append([]string{strings.Join(title, ": ")}, state...), ", "), body...)
	return nil
}

func indented(raw protocol.Raw) string {
	v := raw.Clone()
	if v.Indent() != nil {
		return string(raw)
	}
	return string(v)
}
