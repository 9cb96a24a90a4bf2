package sim

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"macronode/chaos/world"
)

// Timeline plays a log and draws an SVG: a lane per participant, time downwards, a band per move,
// and the node's changes at the right. The violated rule is at the end, in red.
func Timeline(to io.Writer, l world.Log) error { return New(Replay(l)).picture(to, l) }

func (w *World) picture(to io.Writer, l world.Log) error {
	s := w.listen()
	err := w.Run()
	var f *Failure
	if err != nil && !errors.As(err, &f) {
		return err
	}
	p := &picture{}
	p.draw(s, l, f)
	_, err = io.WriteString(to, p.whole())
	return err
}

// sizes in pixels; wrap in characters
const (
	left     = 130 // of the first lane
	laneWide = 210
	boxWide  = 198
	line     = 14
	wrap     = 28
	top      = 122
	width    = left + int(lanes)*laneWide + 190
)

// picture is an SVG that grows downwards.
type picture struct {
	body strings.Builder
	y    int
}

func (p *picture) put(format string, args ...any) { fmt.Fprintf(&p.body, format+"\n", args...) }

func (p *picture) text(x, y int, class, text string) {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder does not fail
	p.put(`<text x="%d" y="%d" class="%s">%s</text>`, x, y, class, b.String())
}

func middle(l lane) int { return left + int(l)*laneWide + laneWide/2 }

// draw draws the run. Moves without an effect are left out; moves that differ only in numbers are
// drawn once and counted.
func (p *picture) draw(s *recording, l world.Log, f *Failure) {
	p.head(l, f)
	p.y = top
	before, like := "", 0
	for i := range s.beats {
		b := &s.beats[i]
		if len(b.all) == 0 {
			continue
		}
		if shape := b.shape(); shape == before && i < len(s.beats)-1 {
			like++
			continue
		} else if before = shape; like > 0 {
			p.text(left, p.y+line, "faint", fmt.Sprintf("⋮ and the same %d times more", like))
			p.y, like = p.y+2*line, 0
		}
		p.beat(b)
	}
	p.verdict(f)
}

// shape is the content of a beat without numbers.
func (b *beat) shape() string {
	s := digits.ReplaceAllString(b.name, "#")
	for _, h := range b.all {
		s += fmt.Sprint(h.lane, h.tone, digits.ReplaceAllString(strings.Join(h.text, "|"), "#"))
	}
	return s
}

var digits = regexp.MustCompile(`\d+`)

// head draws the title, the legend and the names of the lanes.
func (p *picture) head(l world.Log, f *Failure) {
	title := "A run without a violated rule"
	if f != nil {
		title = "Broken: " + f.Rule
	}
	p.text(14, 30, "title", title)
	p.text(14, 52, "faint", fmt.Sprintf("%d choices, %d of them not 0. Time goes downwards; a band is one move. An arrow points from a cause to its effect.", len(l), l.Surprises()))
	x := 14
	for t, text := range [tones]string{"done", "answered: a promise", "fault: power, disk, clock, clients", "recovery", "violated rule"} {
		p.put(`<rect x="%d" y="64" width="14" height="12" rx="3" class="box t%d"/>`, x, t)
		p.text(x+20, 74, "faint", text)
		x += 50 + 7*len(text)
	}
	p.text(14, top-14, "lane", "time, move")
	for n := range lanes {
		p.put(`<text x="%d" y="%d" class="lane" text-anchor="middle">%v</text>`, middle(n), top-14, n)
	}
	p.text(left+int(lanes)*laneWide+6, top-14, "lane", "changed in the node")
}

// beat draws a band.
func (p *picture) beat(b *beat) {
	from, boxes := p.y, &picture{y: p.y + 5}
	for _, h := range b.all {
		boxes.happening(h)
	}
	moved := changes(b.before, b.after)
	for n, text := range moved {
		boxes.text(left+int(lanes)*laneWide+6, from+17+n*line, "change", text)
	}
	p.y = max(boxes.y, from+8+2*line, from+8+len(moved)*line) + 3
	boxes.text(14, from+17, "time", clock(b.at.Mono))
	boxes.text(14, from+17+line, "name", b.name)
	p.put(`<rect x="0" y="%d" width="%d" height="%d" class="band"/>`, from, width, p.y-from)
	for n := range lanes {
		p.put(`<line x1="%d" y1="%d" x2="%d" y2="%d" class="life"/>`, middle(n), from, middle(n), p.y)
	}
	p.body.WriteString(boxes.body.String())
	p.y++
}

// happening draws a box in its lane, and an arrow from its cause.
func (p *picture) happening(h happening) {
	text := h.lines()
	tall := len(text)*line + 6
	x, y := middle(h.lane)-boxWide/2, p.y
	if h.from != noLane {
		at, end, tip := y+tall/2, x, x-6
		if h.from > h.lane {
			end, tip = x+boxWide, x+boxWide+6
		}
		p.put(`<line x1="%d" y1="%d" x2="%d" y2="%d" class="arrow"/><circle cx="%d" cy="%d" r="3" class="from"/>`, middle(h.from), at, tip, at, middle(h.from), at)
		p.put(`<path d="M%d %d L%d %d L%d %d Z" class="from"/>`, end, at, tip, at-4, tip, at+4)
	}
	p.put(`<rect x="%d" y="%d" width="%d" height="%d" rx="4" class="box t%d"/>`, x, y, boxWide, tall, h.tone)
	for n, row := range text {
		p.text(x+6, y+line+n*line-1, fmt.Sprintf("says s%d", h.tone), row)
	}
	p.y += tall + 3
}

const mostRows = 7

// lines returns the rows of a box: repeated rows are counted, long ones wrapped, too many cut.
func (h happening) lines() (rows []string) {
	for i := 0; i < len(h.text); {
		n := 1
		for i+n < len(h.text) && digits.ReplaceAllString(h.text[i+n], "#") == digits.ReplaceAllString(h.text[i], "#") {
			n++
		}
		text := h.text[i]
		if n > 1 {
			text += fmt.Sprintf(", %d alike", n)
		}
		rows = append(rows, wrapped(text, wrap)...)
		i += n
	}
	if len(rows) > mostRows {
		rows = append(rows[:mostRows-1], fmt.Sprintf("… %d lines more", len(rows)-mostRows+1))
	}
	return rows
}

// wrapped breaks a text into rows, at line ends and spaces.
func wrapped(text string, most int) (rows []string) {
	for one := range strings.SplitSeq(text, "\n") {
		rows = append(rows, folded(one, most)...)
	}
	return rows
}

func folded(text string, most int) (rows []string) {
	for letters := []rune(strings.ReplaceAll(text, "\t", "    ")); len(letters) > 0; {
		n := min(most, len(letters))
		if n < len(letters) {
			if at := strings.LastIndex(string(letters[:n]), " "); at > 0 {
				n = len([]rune(string(letters[:n])[:at])) + 1
			}
		}
		rows = append(rows, strings.TrimRight(string(letters[:n]), " "))
		letters = letters[n:]
	}
	return rows
}

// verdict draws the end.
func (p *picture) verdict(f *Failure) {
	if f == nil {
		p.text(14, p.y+24, "title", "No rule was broken.")
		p.y += 40
		return
	}
	rows := wrapped(f.Text, 190)
	if len(rows) > 12 {
		rows = rows[:12]
	}
	p.put(`<rect x="0" y="%d" width="%d" height="%d" class="end"/>`, p.y+4, width, 40+len(rows)*line)
	p.text(14, p.y+26, "title bad", "Broken: "+f.Rule)
	for n, row := range rows {
		p.text(14, p.y+46+n*line, "says s4", row)
	}
	p.y += 60 + len(rows)*line
}

const looks = `text{font:11px "DejaVu Sans Mono",ui-monospace,Menlo,Consolas,monospace;fill:#1d2530;white-space:pre}
.title{font:bold 18px "DejaVu Sans",Helvetica,Arial,sans-serif}.bad{fill:#b3121d}.faint{font:12px "DejaVu Sans",Helvetica,Arial,sans-serif;fill:#5a6675}
.lane{font:bold 13px "DejaVu Sans",Helvetica,Arial,sans-serif}.time{fill:#5a6675}.name{font-weight:bold}.change{fill:#274b8a}
.band{fill:#fff;stroke:#e3e7ec}.life{stroke:#d3d9e0;stroke-dasharray:2 3}.arrow{stroke:#7c8794}.from{fill:#7c8794}
.box{stroke-width:1}.t0{fill:#f2f5f9;stroke:#b9c3cf}.t1{fill:#e2f4e5;stroke:#5ea96b}.t2{fill:#fdebd3;stroke:#dc8f2c}.t3{fill:#ece5fa;stroke:#8a6fc9}.t4{fill:#fbd9db;stroke:#c4202c;stroke-width:2}
.s4{fill:#8d0f18;font-weight:bold}.end{fill:#fdeeee;stroke:#c4202c}`

func (p *picture) whole() string {
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d"><style>%s</style><rect width="100%%" height="100%%" fill="#fafbfc"/>
%s</svg>
`, width, p.y+10, width, p.y+10, looks, p.body.String())
}
