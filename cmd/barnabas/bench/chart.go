package bench

import (
	"bufio"
	"cmp"
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// WriteChart draws results as one SVG file: the distribution of the delays, throughput and 99th percentile over time, and the latter
// by rate where there are several. Curves of the same colour are of the same result.
func WriteChart(w io.Writer, title string, results []*Result) error {
	delays := plot{title: "delay by percentile", x: "percent of requests or records", y: "ms", percent: true, log: true}
	through := plot{title: "throughput", x: "s", y: "MiB/s"}
	tail := plot{title: "99th percentile of each part of the run", x: "s", y: "ms", log: true}
	if len(results) > 0 && results[0].Bytes == 0 { // connections have none
		through.title, through.y = "", ""
	}
	for _, r := range results {
		d, t, p := curve{name: r.label()}, curve{name: r.label()}, curve{name: r.label()}
		for _, q := range r.Distribution {
			d.add(-math.Log10(1-q.Percent/100), q.Micros/1e3)
		}
		for _, s := range r.Timeline {
			t.add(s.Second, per(float64(s.Bytes)/(1<<20), s.Seconds))
			if s.Latency.Max > 0 {
				p.add(s.Second, s.Latency.P99/1e3)
			}
		}
		delays.curves, through.curves, tail.curves = append(delays.curves, d), append(through.curves, t), append(tail.curves, p)
	}
	out := bufio.NewWriter(w)
	plots := []*plot{&delays, &through, &tail}
	if rates := byRate(results); len(rates.curves) > 0 {
		plots = append([]*plot{rates}, plots...)
	}
	height := chartTop + len(plots)*plotHeight + 20*len(results)
	fmt.Fprintf(out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" font-family="sans-serif" font-size="12">`+"\n", chartWidth, height)
	fmt.Fprintf(out, `<rect width="100%%" height="100%%" fill="white"/><text x="%d" y="24" font-size="16">%s</text>`+"\n", plotLeft, html.EscapeString(title))
	for i, r := range results {
		fmt.Fprintf(out, `<g transform="translate(%d,%d)"><rect width="14" height="4" y="-6" fill="%s"/><text x="20">%s</text></g>`+"\n",
			plotLeft, 48+20*i, colour(i), html.EscapeString(r.label()))
	}
	for i, p := range plots {
		fmt.Fprintf(out, `<g transform="translate(%d,%d)">`+"\n", plotLeft, chartTop+20*len(results)+i*plotHeight)
		p.draw(out)
		fmt.Fprintln(out, "</g>")
	}
	fmt.Fprintln(out, "</svg>")
	return out.Flush()
}

// byRate shows what became of the 99th percentile at different rates, where there are several.
func byRate(results []*Result) *plot {
	p := &plot{title: "99th percentile by rate", x: "records/s that were due", y: "ms", log: true}
	c := curve{name: p.title}
	for _, r := range results {
		if r.Rate > 0 {
			c.add(r.Rate, r.Latency.P99/1e3)
		}
	}
	slices.SortFunc(c.points, func(a, b point) int { return cmp.Compare(a.x, b.x) })
	if len(c.points) > 1 && c.points[0].x < c.points[len(c.points)-1].x {
		p.curves = []curve{c}
	}
	return p
}

// The layout, in pixels.
const (
	chartWidth = 900
	chartTop   = 60
	plotLeft   = 80
	plotWidth  = 780
	plotHeight = 300
	areaHeight = 220
)

func colour(i int) string {
	colours := [...]string{"#0b6fb8", "#d1495b", "#2a9d4a", "#8a4fbf", "#d98200", "#3b3b3b", "#00a0a0", "#b0367f"}
	return colours[i%len(colours)]
}

func (r *Result) label() string {
	if r.Rate > 0 {
		return fmt.Sprintf("%s, %.0f/s", r.Name, r.Rate)
	}
	return r.Name
}

type point struct{ x, y float64 }

type curve struct {
	name   string
	points []point
}

func (c *curve) add(x, y float64) { c.points = append(c.points, point{x, y}) }

// plot is one pair of axes with curves.
type plot struct {
	title, x, y string
	percent     bool // x is the number of nines
	log         bool // y is
	curves      []curve
}

func (p *plot) draw(w io.Writer) {
	xs, low, high := 0.0, math.Inf(1), 0.0
	for _, c := range p.curves {
		for _, at := range c.points {
			xs, low, high = max(xs, at.x), min(low, at.y), max(high, at.y)
		}
	}
	if high <= 0 || xs <= 0 {
		return // nothing to draw
	}
	scale := func(y float64) float64 { return areaHeight * (1 - y/(high*1.05)) }
	ticks := linear(high * 1.05)
	if p.log {
		from, to := math.Floor(math.Log10(max(low, 1e-6))), math.Ceil(math.Log10(high*1.01))
		scale = func(y float64) float64 { return areaHeight * (1 - (math.Log10(max(y, 1e-6))-from)/max(to-from, 1)) }
		ticks = nil
		for e := from; e <= to; e++ {
			ticks = append(ticks, math.Pow(10, e))
		}
	}
	fmt.Fprintf(w, `<text y="-8" font-weight="bold">%s</text><text x="-8" y="-8" text-anchor="end">%s</text><text x="%d" y="%d" text-anchor="end">%s</text>`+"\n",
		html.EscapeString(p.title), html.EscapeString(p.y), plotWidth, areaHeight+36, html.EscapeString(p.x))
	for _, t := range ticks {
		fmt.Fprintf(w, `<path d="M0 %.1fh%d" stroke="#ddd"/><text x="-8" y="%.1f" text-anchor="end">%s</text>`+"\n", scale(t), plotWidth, scale(t)+4, short(t))
	}
	marks := linear(xs)
	if p.percent {
		marks = []float64{0, -math.Log10(0.5)}
		for n := 1.0; n <= xs; n++ {
			marks = append(marks, n)
		}
	}
	for _, m := range marks {
		name := short(m)
		if p.percent {
			name = strconv.FormatFloat(100*(1-math.Pow(10, -m)), 'f', max(0, int(math.Round(m))-2), 64)
		}
		fmt.Fprintf(w, `<path d="M%.1f 0v%d" stroke="#eee"/><text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n",
			plotWidth*m/xs, areaHeight, plotWidth*m/xs, areaHeight+18, name)
	}
	fmt.Fprintf(w, `<path d="M0 0v%dh%d" fill="none" stroke="#333"/>`+"\n", areaHeight, plotWidth)
	for i, c := range p.curves {
		var at strings.Builder
		for _, q := range c.points {
			fmt.Fprintf(&at, "%.1f,%.1f ", plotWidth*q.x/xs, scale(q.y))
		}
		fmt.Fprintf(w, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"><title>%s</title></polyline>`+"\n",
			strings.TrimSpace(at.String()), colour(i), html.EscapeString(c.name))
		if len(c.points) == 1 { // a line of one point isn't seen
			fmt.Fprintf(w, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", plotWidth*c.points[0].x/xs, scale(c.points[0].y), colour(i))
		}
	}
}

// linear gives about five round numbers from 0 to the highest.
func linear(high float64) (ticks []float64) {
	step := math.Pow(10, math.Floor(math.Log10(high/5)))
	for _, factor := range []float64{1, 2, 5, 10} {
		if high/(step*factor) <= 7 {
			step *= factor
			break
		}
	}
	for t := 0.0; t <= high; t += step {
		ticks = append(ticks, t)
	}
	return ticks
}

func short(x float64) string { return strconv.FormatFloat(x, 'g', 4, 64) }
