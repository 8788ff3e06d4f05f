// Package fakemodel is an OpenAI-compatible model server for tests: it answers
// what a test has scripted, over real HTTP, and records what it was asked. Point
// a provider at it with the setting providers.NAME.base_url = Server.URL(); it
// needs no key.
//
//	fake := fakemodel.New(t)
//	fake.Script(
//		fakemodel.Say("Hello, ", "world."),                      // the first request
//		fakemodel.Fail(429, `{"error":{"message":"slow down"}}`), // the second
//	)
//	fake.On("weather", fakemodel.Call("get_weather", `{"city":"Oslo"}`))
//
// A request takes the first rule whose text its last user message contains, else
// the next scripted reply, else the default reply, which says "ok" at once. A
// reply can stop at a [Gate] until the test lets it go on, so that a test never
// sleeps:
//
//	gate := fake.Gate()
//	fake.Script(fakemodel.Say("one ", "two").Hold(gate, 1)) // after one piece
//	...
//	gate.Wait(t)    // the server has sent "one " and waits
//	gate.Release()
package fakemodel
