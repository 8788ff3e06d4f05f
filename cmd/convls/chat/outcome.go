package chat

import (
	"context"

	"convls/protocol"
)

// job is the part of a command that talks with the server. It runs beside the
// screen, so it gets all it needs when it is made and changes nothing by itself.
type job func(ctx context.Context, c caller) (outcome, error)

// outcome is what came of a command; whoever shows it, the screen or plain mode,
// takes what it can.
type outcome struct {
	// snapshot is the session to show from now on; older are rows before its first.
	// followed says that it was taken together with a subscription.
	snapshot *protocol.SessionOpenResult
	followed bool
	older    *protocol.Transcript
	// fresh leaves the session for one that the first message will make.
	fresh *fresh
	// say is a line for the person.
	say string
	// page is a text to read; list is things to choose from.
	page *page
	list *list
	// focus is the node that should be seen.
	focus string
	// draft is a text that goes into the input.
	draft *draft
	// question has to be answered before anything happens.
	question *question
	// turns are the replies that were asked for.
	turns []string
	// head is where a reply says that HEAD is.
	head string
	// attach is added to the next message; sent says that a message went out with
	// everything that was attached.
	attach *attachment
	detach bool
	sent   bool
	// models, sessions and hits are kept for completion and for choosing by number.
	models   []protocol.Model
	sessions []protocol.Session
	hits     []protocol.SearchHit
	// copy goes to the clipboard.
	copy    string
	quit    bool
	restart bool
}

// fresh says with what a session will be made.
type fresh struct {
	title, model, system string
}

// page is a text to read.
type page struct {
	title string
	// body is Markdown if markdown is set, else text in columns that is not wrapped.
	body     string
	markdown bool
	// graph is drawn on the screen in the place of body.
	graph *protocol.GraphView
	// plain is what is printed where there is no screen; body if it is empty.
	plain string
}

// list is things to choose from; choosing one enters its command.
type list struct {
	title string
	items []item
	// empty is shown if there are none.
	empty string
}

// item is one thing of a list.
type item struct {
	title, about string
	// input is the command that choosing it enters.
	input string
	// current marks the one that is in use.
	current bool
}

// draft is a text for the input.
type draft struct {
	text string
	// edits is the node that sending the text replaces by a sibling; number is that
	// message's, reply says that it is a reply, which nothing answers.
	edits  string
	number int64
	reply  bool
}

// question asks before something that can not be taken back.
type question struct {
	text string
	yes  job
	// again is the command that does it without asking.
	again string
}

// confirmed is a job that does at once what it would ask for.
func confirmed(do job) job {
	return func(ctx context.Context, c caller) (outcome, error) {
		o, err := do(ctx, c)
		if err != nil || o.question == nil {
			return o, err
		}
		return o.question.yes(ctx, c)
	}
}

// done makes a job of an outcome that needs no server.
func done(o outcome) job {
	return func(context.Context, caller) (outcome, error) { return o, nil }
}

// say makes a job that only tells something.
func say(text string) job { return done(outcome{say: text}) }
