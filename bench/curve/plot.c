/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Makes of the curve's JSON lines what people look at: one SVG a kernel, one of percentiles, a table, and the
 * comparison of contd with the other ways. Needs nothing but a C library.
 */
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POINTS 1024u
#define SERIES 32u
#define TEXT 96u

struct point {
	char series[TEXT], setting[TEXT], mode[TEXT], kernel[TEXT];
	bool contd;
	double median, p99, p999, most, samples, cost, loss, aside, doubt, send;
	unsigned style; /* of its series, counted among contd's or among the others */
};

static struct point points[POINTS];
static unsigned count;
static double rate, slices, undisturbed; /* the last two of all points together */

static void fail(const char *what, const char *name)
{
	fprintf(stderr, "plot: %s%s\n", what, name);
	exit(1);
}

/* ------------------------------------------------------------------------------- reading --- */

static const char *value_of(const char *line, const char *name)
{
	char key[TEXT];
	const char *at;

	snprintf(key, sizeof(key), "\"%s\":", name);
	at = strstr(line, key);
	return at ? at + strlen(key) : NULL;
}

static double number(const char *line, const char *name)
{
	const char *at = value_of(line, name);

	return at ? strtod(at, NULL) : NAN;
}

static void text(const char *line, const char *name, char to[TEXT])
{
	const char *at = value_of(line, name);
	size_t n;

	to[0] = '\0';
	if (!at || *at != '"')
		return;
	n = strcspn(++at, "\"");
	snprintf(to, TEXT, "%.*s", (int)n, at);
}

static void read_point(const char *line)
{
	struct point *p = &points[count];
	const char *contd = value_of(line, "contd");

	memset(p, 0, sizeof(*p));
	text(line, "series", p->series);
	text(line, "setting", p->setting);
	text(line, "mode", p->mode);
	text(line, "kernel", p->kernel);
	p->contd = contd && strncmp(contd, "true", 4) == 0;
	p->median = number(line, "median_us");
	p->p99 = number(line, "p99_us");
	p->p999 = number(line, "p999_us");
	p->most = number(line, "max_us");
	p->samples = number(line, "samples");
	p->cost = number(line, "cost_percent");
	p->loss = number(line, "loss_percent");
	p->aside = number(line, "aside_percent");
	p->doubt = number(line, "doubt");
	p->send = number(line, "send_us");
	if (!p->series[0] || !(p->median > 0) || isnan(p->cost))
		return;
	rate = number(line, "rate");
	slices += number(line, "slices");
	undisturbed += number(line, "undisturbed");
	for (unsigned i = 0; i < count; i++) {
		if (strcmp(points[i].series, p->series) == 0) {
			p->style = points[i].style;
			count++;
			return;
		}
		if (points[i].contd == p->contd && points[i].style >= p->style)
			p->style = points[i].style + 1;
	}
	count++;
}

static void read_points(FILE *f)
{
	char line[4096];

	while (fgets(line, sizeof(line), f))
		if (strstr(line, "\"bench_mpi_curve\"") && value_of(line, "series") && count < POINTS)
			read_point(line);
	if (!count)
		fail("no points", "");
}

/* Then no figure is what an idle machine would give. */
static bool busy(void)
{
	return undisturbed < 0.75 * slices;
}

/* ----------------------------------------------------------------------------------- SVG --- */

#define WIDTH 1060
#define HEIGHT 660
#define LEFT 80.0
#define RIGHT 770.0
#define TOP 60.0
#define BOTTOM 590.0
#define COST_MIN 0.05 /* less cannot be told from nothing on the machines at hand */
#define COST_MAX 150.0

struct axis {
	double low, high, from, to;
};

static double place(const struct axis *a, double v)
{
	if (v < a->low)
		v = a->low;
	if (v > a->high)
		v = a->high;
	return a->from + (a->to - a->from) * (log(v) - log(a->low)) / (log(a->high) - log(a->low));
}

static void escaped(FILE *f, const char *s)
{
	for (; *s; s++) {
		if (*s == '<')
			fputs("&lt;", f);
		else if (*s == '&')
			fputs("&amp;", f);
		else
			fputc(*s, f);
	}
}

static void words(FILE *f, double x, double y, const char *attributes, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

static void words(FILE *f, double x, double y, const char *attributes, const char *format, ...)
{
	char s[256];
	va_list args;

	va_start(args, format);
	vsnprintf(s, sizeof(s), format, args);
	va_end(args);
	fprintf(f, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, attributes);
	escaped(f, s);
	fputs("</text>\n", f);
}

static void segment(FILE *f, double x1, double y1, double x2, double y2, const char *attributes)
{
	fprintf(f, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n", x1, y1, x2, y2, attributes);
}

static FILE *svg_open(const char *dir, const char *name, const char *title, int height)
{
	char path[1024];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s.svg", dir, name);
	f = fopen(path, "w");
	if (!f)
		fail("cannot write ", path);
	fprintf(f,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" "
		"font-family=\"sans-serif\" font-size=\"13\">\n"
		"<!-- SPDX-License-Identifier: BSD-3-Clause -->\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
		WIDTH, height, WIDTH, height);
	words(f, LEFT, 28, "font-size=\"17\" font-weight=\"bold\"", "%s", title);
	return f;
}

static void svg_close(FILE *f)
{
	fputs("</svg>\n", f);
	if (ferror(f) | fclose(f))
		fail("cannot write", "");
}

static const char *amount(double v)
{
	static char s[4][24];
	static unsigned turn;
	char *to = s[turn++ % 4];

	if (v >= 1000)
		snprintf(to, sizeof(s[0]), "%.0f,%03.0f", floor(v / 1000), fmod(v, 1000));
	else
		snprintf(to, sizeof(s[0]), "%.3g", v);
	return to;
}

static void grid(FILE *f, const struct axis *x, const struct axis *y)
{
	for (unsigned horizontal = 0; horizontal < 2; horizontal++) {
		const struct axis *a = horizontal ? y : x;

		for (double decade = pow(10, floor(log10(a->low))); decade <= a->high; decade *= 10) {
			for (unsigned m = 1; m < 10; m++) {
				double v = decade * m, at = place(a, v);
				const char *stroke = m == 1 ? "stroke=\"#bbbbbb\"" : "stroke=\"#eeeeee\"";

				if (v < a->low * 0.999 || v > a->high * 1.001)
					continue;
				if (horizontal)
					segment(f, x->from, at, x->to, at, stroke);
				else
					segment(f, at, y->from, at, y->to, stroke);
				if (m != 1 && m != 2 && m != 5)
					continue;
				if (horizontal)
					words(f, x->from - 8, at + 4, "text-anchor=\"end\" fill=\"#333333\"", "%s",
					      amount(v));
				else
					words(f, at, y->from + 18, "text-anchor=\"middle\" fill=\"#333333\"", "%s%s",
					      v < a->low * 1.01 ? "≤ " : "", amount(v));
			}
		}
	}
	fprintf(f, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"none\" stroke=\"#333333\"/>\n",
		x->from, y->to, x->to - x->from, y->from - y->to);
}

/* contd's series are filled and drawn through, the others' hollow and dashed. */
static const char *colour(const struct point *p)
{
	static const char *const ours[] = {"#1f5fbf", "#c2185b", "#00897b", "#6a1b9a", "#2e7d32",
					   "#0097a7", "#ad1457", "#303f9f", "#558b2f", "#00695c"};
	static const char *const others[] = {"#b8860b", "#444444", "#d2691e", "#777777"};

	return p->contd ? ours[p->style % (sizeof(ours) / sizeof(ours[0]))]
			: others[p->style % (sizeof(others) / sizeof(others[0]))];
}

static void marker(FILE *f, const struct point *p, double x, double y)
{
	char paint[96];

	snprintf(paint, sizeof(paint), "fill=\"%s\" stroke=\"%s\" stroke-width=\"1.6\"",
		 p->contd ? colour(p) : "#ffffff", colour(p));
	switch (p->style % 4) {
	case 0:
		fprintf(f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4.5\" %s/>\n", x, y, paint);
		break;
	case 1:
		fprintf(f, "<rect x=\"%.1f\" y=\"%.1f\" width=\"8.4\" height=\"8.4\" %s/>\n", x - 4.2, y - 4.2, paint);
		break;
	case 2:
		fprintf(f, "<path d=\"M%.1f %.1f l5 9 h-10 z\" %s/>\n", x, y - 5.5, paint);
		break;
	default:
		fprintf(f, "<path d=\"M%.1f %.1f l5.5 5.5 l-5.5 5.5 l-5.5 -5.5 z\" %s/>\n", x, y - 5.5, paint);
	}
}

static void legend(FILE *f, const char *kernel)
{
	double y = TOP + 12;

	for (unsigned ours = 2; ours-- > 0;) {
		for (unsigned i = 0; i < count; i++) {
			const struct point *p = &points[i];
			bool first = true;

			if (p->contd != (ours == 1) || strcmp(p->kernel, kernel) != 0)
				continue;
			for (unsigned j = 0; j < i; j++)
				if (strcmp(points[j].kernel, kernel) == 0 && strcmp(points[j].series, p->series) == 0)
					first = false;
			if (!first)
				continue;
			marker(f, p, RIGHT + 22, y);
			words(f, RIGHT + 36, y + 4, "font-size=\"12\"", "%s", p->series);
			y += 21;
		}
	}
	words(f, RIGHT + 16, y + 16, "font-size=\"11\" fill=\"#555555\"", "Filled: contd. Hollow: without contd.");
	words(f, RIGHT + 16, y + 32, "font-size=\"11\" fill=\"#555555\"", "Below and left is better.");
	words(f, RIGHT + 16, y + 48, "font-size=\"11\" fill=\"#555555\"", "Bars: what the median of the cost may be.");
}

static void plot_kernel(const char *dir, const char *kernel)
{
	struct axis x = {COST_MIN, COST_MAX, LEFT, RIGHT}, y = {INFINITY, 0, BOTTOM, TOP};
	char title[160], name[64];
	FILE *f;

	for (unsigned i = 0; i < count; i++) {
		if (strcmp(points[i].kernel, kernel) != 0)
			continue;
		y.low = fmin(y.low, points[i].median);
		y.high = fmax(y.high, points[i].median);
	}
	if (!(y.high > 0))
		return;
	y.low = y.low > 0.5 ? 0.5 : y.low / 1.5;
	y.high = y.high < 2000 ? 4000 : y.high * 2;
	snprintf(title, sizeof(title), "Reaction to a message while computing: %s kernel",
		 strcmp(kernel, "mixed") == 0    ? "mixed"
		 : strcmp(kernel, "memory") == 0 ? "memory-bound"
						 : "compute-bound");
	snprintf(name, sizeof(name), "latency-%s", kernel);
	f = svg_open(dir, name, title, HEIGHT);
	words(f, LEFT, 48, "fill=\"#555555\"", "2 ranks of one machine, %s messages a second, median of the latency%s",
	      amount(rate), busy() ? "; THE MACHINE WAS BUSY" : "");
	grid(f, &x, &y);
	words(f, (LEFT + RIGHT) / 2, BOTTOM + 42, "text-anchor=\"middle\"",
	      "share of compute lost (%% of a core, threads beside the computation included)");
	fprintf(f, "<g transform=\"translate(24 %.1f) rotate(-90)\">", (TOP + BOTTOM) / 2);
	words(f, 0, 0, "text-anchor=\"middle\"", "latency, send to callback (µs)");
	fputs("</g>\n", f);
	for (unsigned i = 0; i < count; i++) {
		const struct point *p = &points[i], *next = NULL;
		char line[128];

		if (strcmp(p->kernel, kernel) != 0)
			continue;
		for (unsigned j = i + 1; j < count && !next; j++)
			if (strcmp(points[j].kernel, kernel) == 0 && strcmp(points[j].series, p->series) == 0)
				next = &points[j];
		snprintf(line, sizeof(line), "stroke=\"%s\" stroke-width=\"1.4\"%s", colour(p),
			 p->contd ? "" : " stroke-dasharray=\"5 4\"");
		if (next)
			segment(f, place(&x, p->cost), place(&y, p->median), place(&x, next->cost),
				place(&y, next->median), line);
		snprintf(line, sizeof(line), "stroke=\"%s\" stroke-width=\"1\" opacity=\"0.45\"", colour(p));
		segment(f, place(&x, p->cost - p->doubt), place(&y, p->median), place(&x, p->cost + p->doubt),
			place(&y, p->median), line);
	}
	for (unsigned i = 0; i < count; i++) {
		const struct point *p = &points[i];

		if (strcmp(p->kernel, kernel) != 0)
			continue;
		marker(f, p, place(&x, p->cost), place(&y, p->median));
		words(f, place(&x, p->cost) + 7, place(&y, p->median) - 6, "font-size=\"10\" fill=\"#333333\"", "%s",
		      p->setting);
	}
	legend(f, kernel);
	svg_close(f);
}

/* A point in one number: how far above and right it lies on a log-log plot, at worst. */
static double worth(const struct point *p)
{
	return p->median * fmax(p->cost + p->doubt, 2 * COST_MIN);
}

#define PERCENTILES_COST 3.0

/* Of its series the fastest setting that costs little; where none does, the cheapest. */
static bool best_of_series(const struct point *p)
{
	const struct point *best = NULL;

	for (unsigned i = 0; i < count; i++) {
		const struct point *q = &points[i];

		if (strcmp(q->kernel, p->kernel) != 0 || strcmp(q->series, p->series) != 0)
			continue;
		if (!best || (q->cost <= PERCENTILES_COST ? best->cost > PERCENTILES_COST || q->median < best->median
							  : q->cost < best->cost))
			best = q;
	}
	return best == p;
}

static int by_median(const void *a, const void *b)
{
	const struct point *x = *(const struct point *const *)a, *y = *(const struct point *const *)b;

	return x->median < y->median ? -1 : x->median > y->median;
}

/* One row each: the best setting of each series, on the first kernel. */
static void plot_percentiles(const char *dir)
{
	struct axis x = {INFINITY, 0, 380, WIDTH - 40}, y = {1, 2, 0, TOP};
	const struct point *row[SERIES];
	unsigned rows = 0;
	FILE *f;

	for (unsigned i = 0; i < count && rows < SERIES; i++) {
		if (strcmp(points[i].kernel, points[0].kernel) != 0 || !best_of_series(&points[i]))
			continue;
		row[rows++] = &points[i];
		x.low = fmin(x.low, points[i].median);
		x.high = fmax(x.high, points[i].most);
	}
	qsort(row, rows, sizeof(row[0]), by_median);
	x.low = pow(10, floor(log10(x.low)));
	x.high = pow(10, ceil(log10(x.high)));
	y.from = TOP + 34.0 * rows + 10;
	f = svg_open(dir, "latency-percentiles", "Latency: median, 99th and 99.9th percentiles, longest",
		     (int)y.from + 90);
	words(f, LEFT, 48, "fill=\"#555555\"",
	      "Compute-bound kernel; of each way the fastest setting that costs at most %.0f %%, or else the cheapest",
	      PERCENTILES_COST);
	for (double decade = x.low; decade <= x.high * 1.001; decade *= 10) {
		for (unsigned m = 1; m < 10 && decade * m <= x.high * 1.001; m++)
			segment(f, place(&x, decade * m), y.from, place(&x, decade * m), y.to,
				m == 1 ? "stroke=\"#bbbbbb\"" : "stroke=\"#eeeeee\"");
		words(f, place(&x, decade), y.from + 18, "text-anchor=\"middle\" fill=\"#333333\"", "%s",
		      amount(decade));
	}
	words(f, (x.from + x.to) / 2, y.from + 42, "text-anchor=\"middle\"", "latency, send to callback (µs)");
	for (unsigned i = 0; i < rows; i++) {
		const struct point *p = row[i];
		double at = TOP + 34.0 * i + 22;
		char line[128];

		words(f, x.from - 12, at + 1, "text-anchor=\"end\" font-size=\"12\"", "%s, %s", p->series, p->setting);
		words(f, x.from - 12, at + 14, "text-anchor=\"end\" font-size=\"10\" fill=\"#555555\"", "costs %.2f %%",
		      p->cost);
		snprintf(line, sizeof(line), "stroke=\"%s\" stroke-width=\"2\" opacity=\"0.6\"", colour(p));
		segment(f, place(&x, p->median), at, place(&x, p->most), at, line);
		marker(f, p, place(&x, p->median), at);
		snprintf(line, sizeof(line), "stroke=\"%s\" stroke-width=\"3\"", colour(p));
		segment(f, place(&x, p->p99), at - 8, place(&x, p->p99), at + 8, line);
		segment(f, place(&x, p->p999), at - 5, place(&x, p->p999), at + 5, line);
		snprintf(line, sizeof(line), "stroke=\"%s\" stroke-width=\"1\"", colour(p));
		segment(f, place(&x, p->most), at - 4, place(&x, p->most), at + 4, line);
	}
	words(f, x.from, y.from + 68, "font-size=\"11\" fill=\"#555555\"",
	      "Mark: median. Tall bar: 99 %%. Shorter bar: 99.9 %%. End of the line: longest.");
	svg_close(f);
}

/* --------------------------------------------------------------------------------- table --- */

static void table(FILE *f)
{
	static const char *const kernels[] = {"compute", "memory", "mixed"};

	fprintf(f,
		"In %.0f %% of the slices another program had the processor for more than 1 %%; these do not "
		"count.%s\n\n",
		100 * (1 - undisturbed / slices),
		undisturbed < 0.75 * slices
			? " **The machine was busy: take no figure below for what an idle one would give.**"
			: "");
	for (unsigned k = 0; k < sizeof(kernels) / sizeof(kernels[0]); k++) {
		fprintf(f,
			"%s### Kernel `%s`\n\n"
			"| way | setting | median µs | 99 %% µs | 99.9 %% µs | cost %% | ± | of it aside | send µs | "
			"samples |\n"
			"|---|---|---|---|---|---|---|---|---|---|\n",
			k ? "\n" : "", kernels[k]);
		for (unsigned i = 0; i < count; i++) {
			const struct point *p = &points[i];

			if (strcmp(p->kernel, kernels[k]) == 0)
				fprintf(f, "| %s | %s | %s | %s | %s | %.2f | %.2f | %.1f | %.2f | %.0f |\n", p->series,
					p->setting, amount(p->median), amount(p->p99), amount(p->p999), p->cost,
					p->doubt, p->aside, p->send, p->samples);
		}
	}
}

/* ---------------------------------------------------------------------------- comparison --- */

/* Is a cheaper than b, and by more than both are uncertain? */
static bool cheaper(const struct point *a, const struct point *b)
{
	return a->cost + hypot(a->doubt, b->doubt) + 0.05 < b->cost;
}

static bool faster(const struct point *a, const struct point *b)
{
	return a->median < 0.95 * b->median;
}

struct list {
	char text[1024];
	unsigned n;
};

static void list_add(struct list *l, const struct point *p)
{
	size_t at = strlen(l->text);

	snprintf(l->text + at, sizeof(l->text) - at, "%s%s %.2f us %.2f %%", l->n ? ", " : "", p->mode, p->median,
		 p->cost);
	l->n++;
}

static void compare(FILE *f, const char *kernel)
{
	const struct point *best = NULL, *bell = NULL;
	struct list below = {"", 0}, alone = {"", 0};
	double product[POINTS], ticks = NAN;
	unsigned n = 0;

	for (unsigned i = 0; i < count; i++) {
		const struct point *p = &points[i];

		if (!p->contd || strcmp(p->kernel, kernel) != 0)
			continue;
		if (!best || worth(p) < worth(best))
			best = p;
		if (strcmp(p->series, "contd: doorbell") == 0 && (!bell || worth(p) < worth(bell)))
			bell = p;
		if (strcmp(p->series, "contd: ticks") == 0 && p->cost >= 0.8 && p->cost <= 30)
			product[n++] = p->median * p->cost;
	}
	if (!best)
		return;
	for (unsigned i = 0; i < count; i++) {
		const struct point *o = &points[i];
		bool met = false;

		if (o->contd || strcmp(o->kernel, kernel) != 0)
			continue;
		if (cheaper(o, best) && faster(o, best))
			list_add(&below, o);
		for (unsigned j = 0; j < count && !met; j++)
			met = points[j].contd && strcmp(points[j].kernel, kernel) == 0 && !cheaper(o, &points[j]) &&
			      !faster(o, &points[j]);
		if (!met)
			list_add(&alone, o);
	}
	fprintf(f,
		"{\"bench\":\"bench_mpi_curve\",\"case\":\"below and left of the best, "
		"%s\",\"figure\":%u,\"unit\":\"modes\","
		"\"target\":0,\"direction\":\"max\",\"met\":%s,\"best\":\"%s %.2f us %.2f %%\",\"by\":\"%s\"}\n",
		kernel, below.n, below.n ? "false" : "true", best->mode, best->median, best->cost, below.text);
	fprintf(f,
		"{\"bench\":\"bench_mpi_curve\",\"case\":\"not matched by contd, %s\",\"figure\":%u,\"unit\":\"modes\","
		"\"target\":null,\"direction\":\"max\",\"met\":null,\"by\":\"%s\"}\n",
		kernel, alone.n, alone.text);
	if (!bell || !n)
		return;
	/* With ticks latency and cost are in inverse proportion; their product says how. */
	for (unsigned i = 0; i < n; i++)
		for (unsigned j = i + 1; j < n; j++)
			if (product[j] < product[i]) {
				double swap = product[i];

				product[i] = product[j];
				product[j] = swap;
			}
	ticks = product[n / 2] / fmax(bell->cost, COST_MIN);
	fprintf(f,
		"{\"bench\":\"bench_mpi_curve\",\"case\":\"doorbell against ticks, "
		"%s\",\"figure\":%.4f,\"unit\":\"ratio\","
		"\"target\":0.1,\"direction\":\"max\",\"met\":%s,\"bell\":\"%s\",\"bell_us\":%.2f,\"ticks_us\":%.2f,"
		"\"cost_percent\":%.2f}\n",
		kernel, bell->median / ticks, bell->median / ticks <= 0.1 ? "true" : "false", bell->mode, bell->median,
		ticks, bell->cost);
}

static FILE *open_or_fail(const char *name, const char *how)
{
	FILE *f = fopen(name, how);

	if (!f)
		fail("cannot open ", name);
	return f;
}

int main(int argc, char **argv)
{
	static const char *const kernels[] = {"compute", "memory", "mixed"};
	FILE *f;

	if (argc != 5) {
		fprintf(argc == 2 && strcmp(argv[1], "--help") == 0 ? stdout : stderr,
			"usage: %s JSON DIRECTORY TABLE COMPARISON\n\nReads JSON, writes DIRECTORY/latency-*.svg, a "
			"table "
			"as Markdown, and JSON lines that compare contd with the other ways.\n",
			argv[0]);
		return argc == 2 && strcmp(argv[1], "--help") == 0 ? 0 : 2;
	}
	f = open_or_fail(argv[1], "r");
	read_points(f);
	fclose(f);
	for (unsigned k = 0; k < sizeof(kernels) / sizeof(kernels[0]); k++)
		plot_kernel(argv[2], kernels[k]);
	plot_percentiles(argv[2]);
	f = open_or_fail(argv[3], "w");
	table(f);
	if (ferror(f) | fclose(f))
		fail("cannot write ", argv[3]);
	f = open_or_fail(argv[4], "w");
	for (unsigned k = 0; k < sizeof(kernels) / sizeof(kernels[0]); k++)
		compare(f, kernels[k]);
	if (ferror(f) | fclose(f))
		fail("cannot write ", argv[4]);
	return 0;
}
