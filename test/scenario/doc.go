// Package scenario tests the real program over real standard input and output.
//
// The files in testdata are scenarios: operations as text, each with what comes of
// it below "----" (go test ./test/scenario -update writes that anew). The test
// "walk" makes such operations up at random; what it prints when it fails is a
// scenario file. After every operation the harness holds HEAD, branches, queue,
// transcript and context against package reference, and every prompt that the
// model was sent, too: the scripted model answers with a digest of its prompt.
//
// The operations, with the message or title as input:
//
//	session NAME [system=TEXT]      makes a session and goes on in it [policy=P]
//	use NAME                        goes on in a session
//	send [wait] [expect=NODE]       [hold], [tool], [tools], [holdtool], [fail],
//	                                [cut], [overflow] and [refuse] in the text say
//	                                what the model does; [long] is a long reply
//	retry NODE [count=N]            edit NODE, cancel NODE, release (what is held)
//	exec [wait] [head=NODE]         [caller=NODE] [range=N] [expose]: a call off the
//	                                chain, with its prompt
//	spawn [wait] [head=NODE]        [caller=NODE] [expose]: a spawned turn
//	fork NODE [name=X]              checkout NODE or branch=X [descend]
//	rewind NODE                     delete NODE or branch=X [confirm] [cancel]
//	name NODE or branch=X [to=Y]    title, pin NODE, unpin NODE
//	redact NODE [confirm]           attach NODE source=NODE [from=SESSION]
//	remove SESSION [confirm]        import: the input is the export
//	compact [keep=N] [upto=NODE]    [from=NODE] with instructions, which tell the
//	                                scripted summariser how to fail (see refusals);
//	                                [cancel] or [kill] while it is at work
//	activate NODE or none           undo and redo, by which summary is active
//	rebuild NODE                    policy NAME
//	again                           sends the last change once more
//	kill                            kill -9 and start
//	restart                         shutdown and start
//	context, transcript, graph [head=NODE] [raw], branches, queue, sessions, node NODE,
//	compare NODE NODE, events [after=N], search, views, summaries: show
//
// What a compaction covers is the server's choice: the reference checks that it is
// lawful, takes it over, and knows from then on where it stands.
//
// A node is called by its kind and number (u1, a1, t1, x1, s1, c1), or root.
package scenario
