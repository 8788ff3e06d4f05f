package model

import (
	"bytes"
	"image"
	"image/png"
	"math"
	"strings"
	"sync"
	"testing"

	"convls/protocol"
)

var samples = map[string]string{
	"English":  "The committee met on Thursday to discuss the proposal. Although several members had doubts about the cost, most of them agreed that the old bridge, which was built in 1931, could not be repaired again.\n\nA decision is expected next week.",
	"German":   "Der Ausschuss traf sich am Donnerstag, um über den Vorschlag zu beraten. Obwohl mehrere Mitglieder Zweifel an den Kosten hatten, waren sich die meisten einig, dass die alte Brücke nicht noch einmal repariert werden kann.",
	"Go":       "func (c *Counter) Calibrate(counted, reported int64) {\n\tif counted < calibrationFloor || reported <= 0 {\n\t\treturn\n\t}\n\tc.mu.Lock()\n\tdefer c.mu.Unlock()\n\tfor i := 0; i < 10; i++ {\n\t\tfmt.Println(i, counted)\n\t}\n}\n",
	"JSON":     `{"id": 17, "name": "Ada Lovelace", "tags": ["math", "engine"], "address": {"city": "London", "zip": "W1"}, "active": true, "score": 98.25}`,
	"Hangul":   "위원회는 목요일에 모여 제안을 논의했다. 몇몇 위원은 비용에 의문을 가졌지만 대부분은 오래된 다리를 다시 수리할 수 없다는 데 동의했다. 다음 주에 결정이 내려질 예정이다.",
	"Han":      "委员会星期四开会讨论了这项提案。虽然有几位成员对费用表示怀疑，但大多数人都认为这座建于一九三一年的旧桥已经无法再次修理。预计下周将作出决定。",
	"Japanese": "委員会は木曜日に集まり、提案について話し合った。費用に疑問を持つ委員もいたが、古い橋はもう修理できないという意見が多かった。来週には決定が出る見込みである。",
	"Russian":  "Комитет собрался в четверг, чтобы обсудить предложение. Хотя некоторые члены сомневались в стоимости, большинство согласилось, что старый мост больше нельзя ремонтировать.",
	"Arabic":   "اجتمعت اللجنة يوم الخميس لمناقشة الاقتراح. وعلى الرغم من أن بعض الأعضاء كانت لديهم شكوك حول التكلفة، اتفق معظمهم على أن الجسر القديم لا يمكن إصلاحه مرة أخرى.",
	"Hindi":    "समिति ने गुरुवार को प्रस्ताव पर चर्चा करने के लिए बैठक की। हालांकि कई सदस्यों को लागत के बारे में संदेह था, अधिकांश सहमत थे कि पुराने पुल की मरम्मत नहीं की जा सकती।",
	"Thai":     "คณะกรรมการประชุมกันในวันพฤหัสบดีเพื่อหารือเกี่ยวกับข้อเสนอ แม้ว่าสมาชิกหลายคนจะสงสัยเรื่องค่าใช้จ่าย แต่ส่วนใหญ่เห็นด้วยว่าสะพานเก่าซ่อมอีกไม่ได้",
	"Greek":    "Η επιτροπή συνεδρίασε την Πέμπτη για να συζητήσει την πρόταση. Αν και αρκετά μέλη είχαν αμφιβολίες για το κόστος, τα περισσότερα συμφώνησαν.",
	"emoji":    "😀🎉👍🏽❤️🚀🔥😭🙏✨🤖👨‍👩‍👧🏳️‍🌈",
	"mixed":    "Please fix 버그 in `utils.go` (行号 42): расчёт wrong 😅.",
	"log":      "2026-01-01T12:00:00.123Z INFO  server/dispatch.go:117 request done {\"id\": \"01J9Z\", \"ms\": 12}\n2026-01-01T12:00:01.456Z WARN  store/tx.go:88 slow commit {\"ms\": 250}\n",
	"spaces":   strings.Repeat("        return value\n", 30),
}

// The estimate stays inside a band around a real tokeniser's count, both ways:
// neither two to six times too low (fault 40) nor far too high (fault 41).
func TestEstimateBand(t *testing.T) {
	enc := newEncodings()
	for name, text := range samples {
		for _, s := range []string{text, strings.Repeat(text+" ", 20)} {
			whole := float64(enc.o200k.count(s))
			if share := estimateText(s) / whole; share < 0.75 || share > 1.35 {
				t.Errorf("%s: the estimate is %.2f of %d tokens", name, share, int(whole))
			}
		}
	}
	for name, s := range samples {
		t.Logf("%-9s %.2f", name, estimateText(s)/float64(enc.o200k.count(s)))
	}
}

// The figures of fault 40: tokens a character of o200k.
func TestFault40Figures(t *testing.T) {
	for _, c := range []struct {
		name, text string
		rate       float64
	}{
		{"Hangul prose", strings.Repeat("한국어 문장을 쓰는 것은 정말 재미있는 일이다 ", 800), 0.604},
		{"Hangul without spaces", strings.Repeat("한국어문장을쓰는것은정말재미있는일이다", 1000), 0.964},
		{"Han", strings.Repeat("委員會星期四開會討論了這項提案", 1300), 0.793},
		{"Kana", strings.Repeat("いいんかいはもくようびにあつまった", 1200), 0.740},
	} {
		runes := float64(len([]rune(c.text)))
		if got := estimateText(c.text) / runes; math.Abs(got-c.rate) > 0.12*c.rate {
			t.Errorf("%s: %.3f tokens a character, want about %.3f", c.name, got, c.rate)
		}
	}
}

func testCounter(kind, model string) *Counter { return newCounter("p", kind, model, newEncodings()) }

func TestCounterTokeniser(t *testing.T) {
	for _, c := range []struct{ kind, model, id, source string }{
		{KindOpenAI, "gpt-4o-mini", "o200k_base/openai", SourceTokenizer},
		{KindOpenAI, "gpt-5.1", "o200k_base/openai", SourceTokenizer},
		{KindOpenAI, "openai/gpt-4.1", "o200k_base/openai", SourceTokenizer},
		{KindOpenAI, "o3", "o200k_base/openai", SourceTokenizer},
		{KindOpenAI, "o3-mini", "o200k_base/openai", SourceTokenizer},
		{KindOpenAI, "o365-chat", "script-1/openai", SourceEstimate},
		{KindOpenAI, "gpt-4-turbo", "cl100k_base/openai", SourceTokenizer},
		{KindOpenAI, "gpt-3.5-turbo", "cl100k_base/openai", SourceTokenizer},
		{KindOpenAI, "llama-3", "script-1/openai", SourceEstimate},
		{KindAnthropic, "claude-sonnet-4", "script-1/anthropic/p", SourceEstimate},
		{KindGemini, "gemini-2.5-pro", "script-1/gemini", SourceEstimate},
		{KindOllama, "llama3.2", "script-1/ollama", SourceEstimate},
		{KindOffline, "offline", "o200k_base/offline", SourceTokenizer},
	} {
		k := testCounter(c.kind, c.model)
		if k.ID() != c.id || k.Source() != c.source {
			t.Errorf("%s %s: %s, %s", c.kind, c.model, k.ID(), k.Source())
		}
	}
	k := testCounter(KindOpenAI, "gpt-4o")
	if k.encoding.codec != nil {
		t.Error("the tokeniser is loaded before it counts")
	}
	if n := k.Text("hello world"); n != 2 {
		t.Errorf("%d tokens", n)
	}
	if n := testCounter(KindOffline, "").Text(""); n != 0 {
		t.Errorf("nothing has %d tokens", n)
	}
}

// A long text is counted by samples, within a small error.
func TestLongText(t *testing.T) {
	e := newEncodings()
	s := strings.Repeat(samples["English"]+samples["Han"]+samples["Go"], 3300)
	if len(s) < 4*sampleBytes {
		t.Fatal("too short to say anything")
	}
	want := e.o200k.exact(s[:len(s)/100]) * 100
	if got := e.o200k.count(s); math.Abs(float64(got-want)) > 0.01*float64(want) {
		t.Errorf("%d, want about %d", got, want)
	}
}

// Golden messages (fault 42).
func TestParts(t *testing.T) {
	img := func(w, h int) []byte {
		var b bytes.Buffer
		if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, w, h))); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	image := func(w, h int) []protocol.Part {
		return []protocol.Part{{Type: protocol.PartImage, MIMEType: "image/png", Data: img(w, h)}}
	}
	for _, c := range []struct {
		name  string
		kind  string
		parts []protocol.Part
		want  int
	}{
		{"no parts", KindOpenAI, nil, 0},
		{"text", KindOpenAI, []protocol.Part{textPart("hello world")}, 4 + 2},
		{"OpenAI's own example: 1024x1024 is 765", KindOpenAI, image(1024, 1024), 4 + 765},
		{"OpenAI's own example: 2048x4096 is 1105", KindOpenAI, image(2048, 4096), 4 + 1105},
		{"Anthropic's own example: 1000x1000 is about 1334", KindAnthropic, image(1000, 1000), 4 + 1334},
		{"Anthropic, large", KindAnthropic, image(4000, 4000), 4 + 1600},
		{"Gemini, small", KindGemini, image(384, 384), 4 + 258},
		{"Gemini, tiles", KindGemini, image(1000, 700), 4 + 2*258},
		{"Ollama", KindOllama, image(100, 100), 4 + 768},
		{"an image that can not be read", KindOpenAI, []protocol.Part{{Type: protocol.PartImage, Data: []byte("no image")}}, 4 + 765},
		{"call", KindOpenAI, []protocol.Part{toolCall("c", "hello", `{}`)}, 4 + 8 + 1 + 1},
		{"call that is elsewhere", KindOpenAI, []protocol.Part{{Type: protocol.PartToolCall, NodeID: "n"}}, 4},
		{"result", KindOpenAI, []protocol.Part{{Type: protocol.PartToolResult, Text: "hello world"}}, 4 + 8 + 2},
		{"resource", KindOpenAI, []protocol.Part{{Type: protocol.PartResource, Text: "hello world"}}, 4 + 2},
		{"reasoning that is not sent back", KindOpenAI, []protocol.Part{{Type: protocol.PartReasoning, Text: "hello world", Signature: "reasoning", Provider: "p"}}, 4},
		{"reasoning of another provider", KindAnthropic, []protocol.Part{{Type: protocol.PartReasoning, Text: "hello world", Signature: "s", Provider: "q"}}, 4},
		{"reasoning without a signature", KindAnthropic, []protocol.Part{{Type: protocol.PartReasoning, Text: "hello world", Provider: "p"}}, 4},
		{"reasoning that is sent back", KindAnthropic, []protocol.Part{{Type: protocol.PartReasoning, Text: "hello world", Signature: "s", Provider: "p"}}, 4 + 3},
	} {
		if got := testCounter(c.kind, "gpt-4o").Parts(c.parts); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func TestRequestCount(t *testing.T) {
	k := testCounter(KindOpenAI, "gpt-4o")
	req := Request{System: "hello world", Messages: []Message{say(RoleUser, "hello world"), say(RoleAssistant, "hello")}}
	bare := k.Request(req)
	if bare != 3+(4+2)+(4+2)+(4+1) {
		t.Errorf("%d", bare)
	}
	req.Tools = []protocol.ToolDeclaration{{Name: "hello", Description: "hello world", Schema: protocol.Raw(`{}`)}}
	if got := k.Request(req) - bare; got != 8+1+2+1 {
		t.Errorf("a tool takes %d", got)
	}
	a := testCounter(KindAnthropic, "claude")
	if got := a.Tools(req.Tools); got < anthropicToolTokens {
		t.Errorf("Anthropic's tools take %d", got)
	}
}

// The provider's usage corrects the count, inside bounds, without changing what
// was counted or the ID (faults 40, 41).
func TestCalibrate(t *testing.T) {
	k := testCounter(KindOllama, "m")
	id, text := k.ID(), k.Text(samples["English"])
	if k.Adjust(1000) != 1000 || k.Source() != SourceEstimate {
		t.Error("adjusted without a reason")
	}
	k.Calibrate(calibrationFloor-1, 500) // too small to say anything
	k.Calibrate(1000, 0)                 // no report
	k.Calibrate(1000, -5)
	if k.Adjust(1000) != 1000 || k.Source() != SourceEstimate {
		t.Error("adjusted by nothing")
	}
	k.Calibrate(1000, 2000)
	if got := k.Adjust(1000); got != 2000 || k.Source() != SourceProvider {
		t.Errorf("after one report: %d, %s", got, k.Source())
	}
	for range 20 {
		k.Calibrate(1000, 800)
	}
	if got := k.Adjust(1000); got < 795 || got > 810 {
		t.Errorf("after many reports of 800: %d", got)
	}
	k.Calibrate(1000, 1e15)
	if got := k.Adjust(1000); got > 1700 {
		t.Errorf("one mad report makes it %d", got)
	}
	for range 50 {
		k.Calibrate(1000, 1)
	}
	if got := k.Adjust(1000); got != 250 {
		t.Errorf("beyond the bound: %d", got)
	}
	if k.ID() != id || k.Text(samples["English"]) != text {
		t.Error("calibration changed what is counted")
	}
}

func TestCounterConcurrently(t *testing.T) {
	k := testCounter(KindOpenAI, "gpt-4o")
	want := k.Text(samples["mixed"])
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				if k.Text(samples["mixed"]) != want {
					t.Error("another count")
				}
				k.Calibrate(100, 120)
				k.Adjust(5)
				k.Source()
			}
		})
	}
	wg.Wait()
}

// Nothing that a person can type takes long or breaks it.
func TestEstimateOddText(t *testing.T) {
	for _, s := range []string{"\xff\xfe\xf0\x9f", strings.Repeat("\u0301", 1000), strings.Repeat(" ", 100_000), strings.Repeat("가", 100_000), "\x00\x01", strings.Repeat("\n", 1000)} {
		if n := estimateText(s); n <= 0 || n > float64(2*len(s)) || math.IsNaN(n) {
			t.Errorf("%.10q: %f", s, n)
		}
	}
}
