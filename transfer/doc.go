// Package transfer takes conversations into the ledger and out of it.
//
// [Import] reads three formats and tells them apart by what is in them:
//
//   - convls: the JSON Lines that [Export] writes; the whole session, nothing lost.
//   - tree: message trees of Open-Assistant, nested or as a flat list with parents.
//   - agent: sessions of a coding agent as JSON Lines, with tool calls, model
//     changes and compactions.
//
// What another program knows and convls has no word for goes into the nodes'
// metadata: rank, language and labels of a message, details of a tool's result,
// the thinking level of a reply. Changes of the model are told by the model of
// each reply.
//
// Of each session in a source either all is stored, in one batch, or nothing; the
// others go on. [Export] writes JSON Lines or, to read, one branch as Markdown.
// [Equal] proves that two sessions are the same.
package transfer
