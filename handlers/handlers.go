// Package handlers serves the convls/* methods, one file a family. A handler
// decodes, calls the package that knows, and encodes: it decides nothing.
package handlers

import (
	"context"
	"crypto/sha256"
	"time"

	"go.uber.org/zap"

	"convls/model"
	"convls/protocol"
	"convls/store"
	"convls/turn"
)

// Conn is the connection that a request came by.
type Conn interface {
	turn.Client
	// Settings are the connection's own, without a session's.
	Settings() protocol.Settings
	// Keys finds the keys of providers for this client.
	Keys() model.KeySource
	// ForgetKeys drops what is remembered of a provider's keys.
	ForgetKeys(provider string)
	// Subscribe brings the events of a session after a cursor to the client, once
	// the reply to the present request is out.
	Subscribe(ctx context.Context, sessionID, after string)
	Unsubscribe(sessionID string)
	// SubscribeStore brings the events that tell of sessions.
	SubscribeStore(ctx context.Context)
	// Admitted lets the next request on the same session begin while this one waits.
	Admitted(ctx context.Context)
	// Progress shows the progress of a long request under the client's token; a
	// missing token shows nothing.
	Progress(ctx context.Context, token protocol.Raw, title string) Progress
}

// Progress tells a client how far a request has come.
type Progress interface {
	// Report tells the share done, 0 to 100.
	Report(percent int, message string)
	End(message string)
}

// Method serves one kind of request.
type Method func(ctx context.Context, c Conn, params []byte) (any, error)

// Handlers are what the methods work on.
type Handlers struct {
	Store   *store.Store
	Engine  *turn.Engine
	Models  *model.Registry
	Logger  *zap.Logger
	Version string
	// Clients returns how many clients are connected.
	Clients func() int
	Started time.Time
}

// Methods returns all methods by name.
func (h *Handlers) Methods() map[string]Method {
	return map[string]Method{
		protocol.MethodSessionCreate:       method(protocol.MethodSessionCreate, h.sessionCreate),
		protocol.MethodSessionList:         method(protocol.MethodSessionList, h.sessionList),
		protocol.MethodSessionOpen:         method(protocol.MethodSessionOpen, h.sessionOpen),
		protocol.MethodSessionRename:       method(protocol.MethodSessionRename, h.sessionRename),
		protocol.MethodSessionConfigure:    method(protocol.MethodSessionConfigure, h.sessionConfigure),
		protocol.MethodSessionDelete:       method(protocol.MethodSessionDelete, h.sessionDelete),
		protocol.MethodSessionSubscribe:    method(protocol.MethodSessionSubscribe, h.sessionSubscribe),
		protocol.MethodSessionUnsubscribe:  method(protocol.MethodSessionUnsubscribe, h.sessionUnsubscribe),
		protocol.MethodSessionSearch:       method(protocol.MethodSessionSearch, h.sessionSearch),
		protocol.MethodSessionExport:       method(protocol.MethodSessionExport, h.sessionExport),
		protocol.MethodSessionImport:       method(protocol.MethodSessionImport, h.sessionImport),
		protocol.MethodStoreSubscribe:      method(protocol.MethodStoreSubscribe, h.storeSubscribe),
		protocol.MethodTranscriptGet:       method(protocol.MethodTranscriptGet, h.transcriptGet),
		protocol.MethodTurnSend:            method(protocol.MethodTurnSend, h.turnSend),
		protocol.MethodTurnRetry:           method(protocol.MethodTurnRetry, h.turnRetry),
		protocol.MethodTurnEdit:            method(protocol.MethodTurnEdit, h.turnEdit),
		protocol.MethodTurnCancel:          method(protocol.MethodTurnCancel, h.turnCancel),
		protocol.MethodBranchList:          method(protocol.MethodBranchList, h.branchList),
		protocol.MethodBranchCheckout:      method(protocol.MethodBranchCheckout, h.branchCheckout),
		protocol.MethodBranchFork:          method(protocol.MethodBranchFork, h.branchFork),
		protocol.MethodBranchRewind:        method(protocol.MethodBranchRewind, h.branchRewind),
		protocol.MethodBranchRename:        method(protocol.MethodBranchRename, h.branchRename),
		protocol.MethodBranchDelete:        method(protocol.MethodBranchDelete, h.branchDelete),
		protocol.MethodBranchCompare:       method(protocol.MethodBranchCompare, h.branchCompare),
		protocol.MethodBranchAttach:        method(protocol.MethodBranchAttach, h.branchAttach),
		protocol.MethodCompactionRun:       method(protocol.MethodCompactionRun, h.compactionRun),
		protocol.MethodCompactionPreview:   method(protocol.MethodCompactionPreview, h.compactionPreview),
		protocol.MethodCompactionCommit:    method(protocol.MethodCompactionCommit, h.compactionCommit),
		protocol.MethodCompactionDiscard:   method(protocol.MethodCompactionDiscard, h.compactionDiscard),
		protocol.MethodCompactionCancel:    method(protocol.MethodCompactionCancel, h.compactionCancel),
		protocol.MethodCompactionList:      method(protocol.MethodCompactionList, h.compactionList),
		protocol.MethodCompactionActivate:  method(protocol.MethodCompactionActivate, h.compactionActivate),
		protocol.MethodCompactionVerify:    method(protocol.MethodCompactionVerify, h.compactionVerify),
		protocol.MethodCompactionRebuild:   method(protocol.MethodCompactionRebuild, h.compactionRebuild),
		protocol.MethodCompactionCovers:    method(protocol.MethodCompactionCovers, h.compactionCovers),
		protocol.MethodGraphGet:            method(protocol.MethodGraphGet, h.graphGet),
		protocol.MethodContextGet:          method(protocol.MethodContextGet, h.contextGet),
		protocol.MethodExec:                method(protocol.MethodExec, h.exec),
		protocol.MethodNodeGet:             method(protocol.MethodNodeGet, h.nodeGet),
		protocol.MethodNodePin:             method(protocol.MethodNodePin, h.nodePin),
		protocol.MethodNodeUnpin:           method(protocol.MethodNodeUnpin, h.nodeUnpin),
		protocol.MethodNodeRedact:          method(protocol.MethodNodeRedact, h.nodeRedact),
		protocol.MethodModelList:           method(protocol.MethodModelList, h.modelList),
		protocol.MethodTextDocumentContent: method(protocol.MethodTextDocumentContent, h.documentContent),
		protocol.MethodStatus:              method(protocol.MethodStatus, h.status),
	}
}

// Parallel returns the methods that may run beside others on their session: they
// take long and change nothing, or must get through while something runs.
func Parallel() map[string]bool {
	return map[string]bool{
		protocol.MethodTurnCancel:       true,
		protocol.MethodCompactionCancel: true,
		protocol.MethodCompactionVerify: true,
		protocol.MethodSessionExport:    true,
		protocol.MethodSessionSearch:    true,
	}
}

// request is what the ledger keeps of a mutation beside its own parameters. The
// hash is over the method and its parameters in canonical form, so that another
// order of members is the same request, as is one that only asks to be answered at
// another time or to show its progress elsewhere.
func request(c Conn, in input, m protocol.Mutation) store.Request {
	sum := sha256.Sum256(append([]byte(in.method+"\n"), canonical(in.params)...))
	return store.Request{ID: m.RequestID, Hash: sum[:], ExpectedHead: m.ExpectedHead,
		Origin: protocol.Origin{ClientID: c.ID(), RequestID: m.RequestID}}
}

// canonical returns the parameters that say what a mutation does, each in the one
// form that it has.
func canonical(params []byte) []byte {
	var members map[string]protocol.Raw
	if err := protocol.UnmarshalParams(params, &members); err != nil {
		return params // they were decoded before: this can not be
	}
	delete(members, "wait")
	delete(members, "workDoneToken")
	whole, err := protocol.Marshal(members)
	if err != nil {
		return params
	}
	form := protocol.Raw(whole)
	if err := form.Canonicalize(); err != nil {
		return params
	}
	return form
}

// environment is what a turn takes from its client.
func environment(c Conn) turn.Environment {
	return turn.Environment{Client: c, Settings: c.Settings(), Keys: c.Keys()}
}

// limit returns n within 1 and most, or usual if it is 0.
func limit(n, usual, most int) (int, error) {
	switch {
	case n == 0:
		return usual, nil
	case n < 0 || n > most:
		return 0, protocol.Errorf(protocol.CodeInvalidParams, "limit is 1 to %d, not %d", most, n)
	}
	return n, nil
}

// seenFrom returns the chain node that a view is seen from; the zero Skeleton, which is
// HEAD to all views, where none is named.
func seenFrom(r *store.Reader, id string) (store.Skeleton, error) {
	if id == "" {
		return store.Skeleton{}, nil
	}
	return r.LookupChain(id)
}

// read runs f on a picture of a session.
func (h *Handlers) read(sessionID string, f func(*store.Session, *store.Reader) error) error {
	sess, err := h.Store.Session(sessionID)
	if err != nil {
		return err
	}
	r, err := sess.Reader()
	if err != nil {
		return err
	}
	defer r.Close()
	return f(sess, r)
}
