package manifest

import (
	"strings"
	"sync"
)

// cue is what a word or phrase says about the sentence it stands in.
type cue uint16

const (
	cueGoal cue = 1 << iota
	cueConstraint
	cueDecision
	cueCompleted
	cueOpen
	cueRest     // something is not done, said in passing
	cueHedge    // the speaker only supposes it
	cueUnknown  // the speaker does not know
	cueNegative // forbids or denies
	cueLift     // takes back what was said before
	cueQuestion
	cueContrast // one thing in place of another
	cueResult   // a test or check went well
	cueWish     // how a person wants something, in passing
)

// cueTable lists the phrases, in lower case. "^" means at the beginning of a
// clause only; a phrase that ends in ":" needs the colon. The English and German
// ones are matched word by word, the Chinese ones anywhere.
var cueTable = []struct {
	cue     cue
	phrases string
}{
	{cueGoal, `goal: my goal; our goal; the goal is; the task is; task: your task; objective: i want; i need; i would like; i'd like; we want; we need to
		ziel: aufgabe: das ziel ist; mein ziel; ich möchte; ich will; ich brauche; wir wollen; wir brauchen`},
	{cueConstraint, `must; mustn't; never; do not; don't; dont; should not; shouldn't; may not; ^only; use only; only use; always; ^keep; avoid; ^no; ^without
		under no circumstances; not allowed; forbidden; prohibited; requirement; constraint: rule: make sure; ensure; at most; at least; no more than; no less than; ^stick to
		refrain from; is not to; are not to; no longer allowed; can't change; cannot change
		muss; müssen; musst; müsst; darf nicht; dürfen nicht; darf kein; niemals; ^nie; immer; ^nur; ^kein; ^keine; ^keinen; vermeide; vermeiden; auf keinen fall; bitte nicht; bitte kein
		bitte keine; nicht ändern; nicht verwenden; nicht benutzen; höchstens; mindestens; verboten`},
	{cueDecision, `decided; we agreed; agreed to; agreed on; let's use; lets use; let's go with; let's keep; we'll use; we will use; i will use; i'll use; we will go with; i'll go with; we go with
		decision: decision is; we chose; i chose; settled on; opted for; the plan is
		entschieden; entscheidung: wir nehmen; wir verwenden; wir benutzen; ich verwende; ich nehme; einigen uns`},
	{cueContrast, `instead of; rather than; statt; anstatt; anstelle`},
	{cueWish, `^use; i prefer; we prefer; prefer; ^max; ^maximum; ^minimum; ^limit; ^set; nimm; verwende; benutze; bevorzuge; lieber`},
	{cueResult, `passed; passes; pass; succeeded; bestanden`},
	{cueCompleted, `done; fixed; finished; completed; implemented; resolved; merged; shipped; deployed; is complete; are complete; i've added; i have added; i added; i created; i've created; i updated; i've updated
		i removed; i've removed; i renamed; now passes; now pass; now works; works now; all green; landed; [x]
		erledigt; fertig; behoben; abgeschlossen; umgesetzt; gefixt; implementiert; funktioniert jetzt; terminé; fini; hecho; terminado; corrigé; arreglado`},
	{cueOpen, `todo; todos; to do: fixme; next step; next steps; next: left to do; open task; open tasks; remaining: still open; [ ]
		noch offen; offen: ist offen; sind offen; nächster schritt; nächste schritte; steht noch aus`},
	{cueRest, `^next; remaining; remains; still need; still needs; still needed; still have to; still has to; still to; still missing; needs to be; pending; follow-up; follow up; outstanding
		als nächstes; noch zu; fehlt noch; fehlen noch`},
	{cueHedge, `maybe; perhaps; probably; possibly; presumably; i suspect; we suspect; suspect; might; could be; could have; may be; may have; seems; seem; appears to; i think; we think; i guess; i assume; i believe; likely; hypothesis
		hypothesis: apparently; my guess; looks like
		vielleicht; vermutlich; wahrscheinlich; ich glaube; ich denke; ich vermute; könnte; könnten; möglicherweise; scheint; anscheinend; eventuell`},
	{cueUnknown, `not sure; unsure; unknown; unclear; don't know; do not know; no idea; open question; to be determined; tbd; we need to find out; need to find out; can't tell; cannot tell; undecided
		unklar; unbekannt; weiß nicht; wissen nicht; nicht sicher; keine ahnung; offene frage`},
	{cueNegative, `not; never; no; none; nobody; nothing; nor; neither; cannot; dont; without; avoid; forbidden; prohibited; refrain
		nicht; nichts; kein; keine; keinen; keinem; keiner; nie; niemals; ohne; vermeide; vermeiden; verboten; weder`},
	{cueLift, `no longer; not needed; you may now; you can now; can now; may now; forget; drop; dropped; lift; lifted; cancel; cancelled; canceled; never mind; nevermind; changed my mind; is allowed; are allowed; now allowed
		allowed again; from now on; revoke; revoked; withdraw; withdrawn; skip; abandon; abandoned; doesn't matter; does not matter; obsolete; superseded; instead; replace; replaced; won't do; will not do; ignore
		nicht mehr; vergiss; aufgehoben; ab jetzt; ab sofort; abgebrochen; gestrichen; ist erlaubt; sind erlaubt; stattdessen; doch nicht`},
}

var wideCueTable = []struct {
	cue     cue
	phrases string
}{
	{cueGoal, "目标 我想 我要 我需要 任务是 希望你"},
	{cueConstraint, "必须 不要 不得 禁止 不能 不可 切勿 务必 始终 总是 只能 只用 只使用 避免 请勿 一定要 绝不 千万别 不许 不准 最多 至少"},
	{cueDecision, "决定 改用 我们用 我们采用 选择了 选用 商定"},
	{cueCompleted, "已完成 完成了 已修复 修复了 搞定 已实现 实现了 已解决"},
	{cueOpen, "待办 接下来 下一步 还需要 尚未 还没 未完成 剩下"},
	{cueResult, "通过了"},
	{cueHedge, "可能 也许 大概 或许 怀疑 估计 应该是 猜测 似乎"},
	{cueUnknown, "不确定 不清楚 未知 不知道 待定"},
	{cueNegative, "不 别 勿 禁止 没 无 避免"},
	{cueLift, "不再 取消 不用 算了 改为 允许 可以了 作废 忘掉"},
	{cueQuestion, "吗 ？"},
}

// idle lists what follows a phrase and takes its meaning: "I don't know" forbids
// nothing.
var idle = map[string]map[string]bool{
	"don't":  wordSet("know think understand see worry care mind remember get have believe need want's"),
	"do not": wordSet("know think understand see worry care mind remember get have believe need"),
	"dont":   wordSet("know think understand see worry care mind remember get have"),
	"no":     wordSet("problem worries idea wait need thanks one doubt matter"),
}

// phrase is one entry of the table, behind its first word.
type phrase struct {
	cue   cue
	rest  []string
	start bool
	colon bool
	text  string
}

type lexicon struct {
	byWord map[string][]phrase
	wide   []phrase
}

var cues = sync.OnceValue(func() *lexicon {
	lex := &lexicon{byWord: map[string][]phrase{}}
	for _, row := range cueTable {
		for _, text := range splitPhrases(row.phrases) {
			p := phrase{cue: row.cue, text: text}
			text, p.start = strings.CutPrefix(text, "^")
			text, p.colon = strings.CutSuffix(text, ":")
			words := strings.Fields(text)
			p.rest = words[1:]
			lex.byWord[words[0]] = append(lex.byWord[words[0]], p)
		}
	}
	for _, row := range wideCueTable {
		for text := range strings.FieldsSeq(row.phrases) {
			lex.wide = append(lex.wide, phrase{cue: row.cue, text: text})
		}
	}
	return lex
})

// splitPhrases splits a row of the table: at semicolons, line ends, and after
// colons.
func splitPhrases(row string) []string {
	var out []string
	row = strings.ReplaceAll(row, ":", ":;")
	for part := range strings.FieldsFuncSeq(row, func(r rune) bool { return r == ';' || r == '\n' }) {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// reading is what the words of one sentence say.
type reading struct {
	cues cue
	// lifts are the phrases that take something back.
	lifts []string
	// orders is how many words and phrases order, forbid or deny.
	orders int
}

// take notes a phrase that the sentence has n times.
func (r *reading) take(p *phrase, n int) {
	r.cues |= p.cue
	switch p.cue {
	case cueLift:
		r.lifts = append(r.lifts, p.text)
	case cueNegative, cueConstraint:
		r.orders += n
	}
}

func (r reading) has(c cue) bool { return r.cues&c != 0 }

// firm tells whether the sentence states something, and does not suppose or ask.
func (r reading) firm() bool { return !r.has(cueHedge | cueUnknown | cueQuestion) }

// word is one word of a sentence, in lower case.
type word struct {
	text       string
	start, end int
}

// reader reads sentences. It keeps its buffers, because a first compaction may
// read 100,000 messages at once.
type reader struct {
	lex   *lexicon
	words []word
	lower []byte
}

func newReader() *reader { return &reader{lex: cues()} }

// readCues is reader.read for a single sentence.
func readCues(sentence string) reading { return newReader().read(sentence) }

// read returns what the words of sentence say.
func (r *reader) read(sentence string) reading {
	var out reading
	isWide := r.split(sentence)
	for i := range r.words {
		w := &r.words[i]
		if strings.HasSuffix(w.text, "n't") {
			out.cues |= cueNegative
			out.orders++
		}
		for k := range r.lex.byWord[w.text] {
			p := &r.lex.byWord[w.text][k]
			if r.matches(sentence, i, p) {
				out.take(p, 1)
			}
		}
	}
	if isWide {
		for i := range r.lex.wide {
			p := &r.lex.wide[i]
			if n := strings.Count(sentence, p.text); n > 0 {
				out.take(p, n)
			}
		}
	}
	if strings.HasSuffix(strings.TrimRight(sentence, " \"')*_`"), "?") {
		out.cues |= cueQuestion
	}
	return out
}

// split fills r.words, and tells whether the sentence has Chinese characters.
// "[ ]" and "[x]" count as words.
func (r *reader) split(sentence string) (isWide bool) {
	r.words = r.words[:0]
	r.lower = append(r.lower[:0], sentence...)
	for i, c := range r.lower {
		if c >= 'A' && c <= 'Z' {
			r.lower[i] = c + ('a' - 'A')
		}
		isWide = isWide || c >= 0xE4 && c <= 0xE9
	}
	text := string(r.lower) // the words are parts of this one copy
	curly := strings.Contains(text, "’")
	start := -1
	for i := 0; i <= len(text); i++ {
		if i < len(text) && wordByte(text, i) {
			if start < 0 {
				start = i
			}
			continue
		}
		if start >= 0 {
			w := text[start:i]
			if curly {
				w = strings.ReplaceAll(w, "’", "'")
			}
			r.words = append(r.words, word{w, start, i})
			start = -1
		}
		if i+2 < len(text) && text[i] == '[' && text[i+2] == ']' {
			r.boxWord(text, i)
		}
	}
	return isWide
}

func (r *reader) boxWord(text string, i int) {
	switch text[i+1] {
	case ' ':
		r.words = append(r.words, word{"[", i, i + 1}, word{"]", i + 2, i + 3})
	case 'x':
		r.words = append(r.words, word{"[x]", i, i + 3})
	}
}

func wordByte(text string, i int) bool {
	c := text[i]
	if isLetter(c) || c >= 0x80 {
		return true
	}
	inside := i > 0 && i+1 < len(text) && isLetter(text[i-1]) && isLetter(text[i+1])
	return inside && (c == '\'' || c == '-')
}

func (r *reader) matches(sentence string, i int, p *phrase) bool {
	last := i + len(p.rest)
	if last >= len(r.words) {
		return false
	}
	for k, w := range p.rest {
		if r.words[i+1+k].text != w {
			return false
		}
	}
	end := r.words[last].end
	if p.colon && (end >= len(sentence) || sentence[end] != ':') {
		return false
	}
	if p.start && !r.clauseStart(sentence, i) {
		return false
	}
	if p.cue != cueConstraint {
		return true
	}
	if next := last + 1; next < len(r.words) {
		key := strings.TrimPrefix(p.text, "^")
		if idle[key][r.words[next].text] {
			return false
		}
	}
	return p.text != "^no" || end >= len(sentence) || sentence[end] == ' ' // "No, the other one."
}

// clauseStart tells whether word i begins a clause: it is the first one, follows
// punctuation, or a word that only joins.
func (r *reader) clauseStart(sentence string, i int) bool {
	if i == 0 {
		return true
	}
	switch r.words[i-1].text {
	case "and", "but", "please", "also", "then", "so", "und", "aber", "bitte", "auch":
		return true
	}
	return strings.ContainsAny(sentence[r.words[i-1].end:r.words[i].start], ",;:-–—.!?([")
}
