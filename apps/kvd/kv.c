/* SPDX-License-Identifier: BSD-3-Clause */
/* kv: the client of kvd. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <time.h>

#include "bench.h"

enum { DONE, REFUSED, USAGE, UNREACHABLE, NOT_ONE_SIDED };

static const char usage[] =
	"usage: kv [--server HOST:PORT] [--provider NAME] [--timeout MS] COMMAND\n"
	"\n"
	"  put KEY VALUE | put KEY -   store a value (-: from standard input)\n"
	"  get KEY                     ask the server for it\n"
	"  read KEY                    read it one-sidedly out of the server's memory\n"
	"  delete KEY\n"
	"  stat                        the server's counters\n"
	"  bench [--seconds N] [--depth D] [--size S] [--mix GET/PUT/READ] [--keys K] [--prefix P] [--keep] [--json]\n"
	"      latencies and throughput; --mix in percent (default 60/20/20, without one-sided reads 80/20/0); with "
	"--prefix\n"
	"      the keys are shared with runs that have the same; --keep: leave them there\n"
	"\n"
	"Exit status: 0 done, 1 there is no such key, or refused, or a wrong value, 2 usage, 3 the server can't be "
	"reached,\n"
	"or standard output can't be written, 4 the provider has no one-sided reads.\n";

struct options {
	const char *server, *provider;
	unsigned timeout_ms, depth;
	struct bench bench;
	bool mix;
};

static bool parse_mix(const char *text, unsigned share[3])
{
	char end;

	return sscanf(text, "%3u/%3u/%3u%c", &share[0], &share[1], &share[2], &end) == 3 && !strchr(text, '-') &&
	       share[0] + share[1] + share[2] == 100;
}

static bool parse(struct options *o, int argc, char **argv)
{
	static const struct option known[] = {{"server", 1, NULL, 'S'},
					      {"provider", 1, NULL, 'p'},
					      {"timeout", 1, NULL, 't'},
					      {"seconds", 1, NULL, 'n'},
					      {"depth", 1, NULL, 'd'},
					      {"size", 1, NULL, 's'},
					      {"mix", 1, NULL, 'm'},
					      {"keys", 1, NULL, 'k'},
					      {"prefix", 1, NULL, 'P'},
					      {"keep", 0, NULL, 'K'},
					      {"json", 0, NULL, 'j'},
					      {"help", 0, NULL, 'h'},
					      {0}};
	int option;

	while ((option = getopt_long(argc, argv, "", known, NULL)) != -1)
		switch (option) {
		case 'S':
			o->server = optarg;
			break;
		case 'p':
			o->provider = optarg;
			break;
		case 't':
			o->timeout_ms = (unsigned)atoi(optarg);
			break;
		case 'n':
			o->bench.seconds = atof(optarg);
			break;
		case 'd':
			o->depth = (unsigned)atoi(optarg);
			break;
		case 's':
			o->bench.size = (uint32_t)atoi(optarg);
			break;
		case 'm':
			o->mix = true;
			if (!parse_mix(optarg, o->bench.share))
				return false;
			break;
		case 'k':
			o->bench.keys = (uint32_t)atoi(optarg);
			break;
		case 'P':
			o->bench.prefix = optarg;
			break;
		case 'K':
			o->bench.keep = true;
			break;
		case 'j':
			o->bench.json = true;
			break;
		case 'h':
			fputs(usage, stdout);
			exit(0);
		default:
			return false;
		}
	return o->timeout_ms && o->depth && o->depth <= KV_DEPTH_MAX && o->bench.size >= 8 &&
	       o->bench.size <= KVD_VALUE_MAX && o->bench.keys && o->bench.seconds >= 0;
}

static void print_value(struct kv_request *r)
{
	if (r->status == KVD_OK && r->got_length)
		fwrite(r->got, 1, r->got_length, stdout);
}

static int simple(struct kv *kv, unsigned operation, const char *key, const unsigned char *value, size_t bytes)
{
	struct kv_request *r = &kv->request[0];
	struct timespec little = {0, 1000000};
	uint64_t until = kvd_now_ns() + kv->timeout_ns;

	if (operation == KV_READ && !kv->layout.one_sided) {
		fprintf(stderr, "kv: this provider has no one-sided reads\n");
		return NOT_ONE_SIDED;
	}
	r->operation = operation;
	r->key_length = key ? (uint32_t)strlen(key) : 0;
	memcpy(r->key, key ? key : "", r->key_length);
	r->value = value;
	r->value_length = (uint32_t)bytes;
	r->done = print_value;
	do {
		kv_start(r);
		if (kv_wait(kv)) {
			fprintf(stderr, "kv: %s\n", kv->error);
			return UNREACHABLE;
		}
	} while (r->status == KVD_AGAIN && kvd_now_ns() < until && nanosleep(&little, NULL) == 0);
	if (r->status != KVD_OK)
		fprintf(stderr, "kv: %s\n", kvd_status_text(r->status));
	return r->status == KVD_OK ? DONE : REFUSED;
}

static int bench(struct kv *kv, struct options *o)
{
	int rc;

	if (!o->mix && !kv->layout.one_sided)
		memcpy(o->bench.share, (unsigned[3]){80, 20, 0}, sizeof(o->bench.share));
	if (o->bench.share[2] && !kv->layout.one_sided) {
		fprintf(stderr, "kv: this provider has no one-sided reads\n");
		return NOT_ONE_SIDED;
	}
	if (o->bench.size > kv->layout.value_max) {
		fprintf(stderr, "kv: the server takes values of %lu bytes at most\n", kv->layout.value_max);
		return REFUSED;
	}
	rc = bench_run(kv, &o->bench, o->provider, stdout);
	if (kv->failed)
		fprintf(stderr, "kv: %s\n", kv->error);
	return rc;
}

int main(int argc, char **argv)
{
	struct options o = {.server = KVD_LISTEN,
			    .provider = KVD_PROVIDER,
			    .timeout_ms = 5000,
			    .depth = 8,
			    .bench = {.seconds = 5, .size = 256, .keys = 1000, .share = {60, 20, 20}}};
	static const struct command {
		const char *name;
		int words;
		unsigned operation;
	} commands[] = {{"put", 2, KVD_PUT},       {"get", 1, KVD_GET},   {"read", 1, KV_READ},
			{"delete", 1, KVD_DELETE}, {"stat", 0, KVD_STAT}, {"bench", 0, 0}};
	const struct command *c = NULL;
	/* One thread does everything, and sleeps by itself. */
	struct contd_config contd = {.size = sizeof(contd), .agent = CONTD_AGENT_CALLER};
	static unsigned char input[KVD_VALUE_MAX + 1];
	const unsigned char *value = NULL;
	size_t bytes = 0;
	struct kv kv;
	int rc;

	rc = parse(&o, argc, argv);
	for (unsigned i = 0; rc && optind < argc && i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(commands[i].name, argv[optind]) == 0 && argc - optind - 1 == commands[i].words)
			c = &commands[i];
	if (!c || (c->words && (!*argv[optind + 1] || strlen(argv[optind + 1]) > KVD_KEY_MAX)))
		return fputs(usage, stderr), USAGE;
	if (c->words == 2 && strcmp(argv[optind + 2], "-") == 0) {
		value = input;
		bytes = fread(input, 1, sizeof(input), stdin);
	} else if (c->words == 2) {
		value = (const unsigned char *)argv[optind + 2];
		bytes = strlen(argv[optind + 2]);
	}
	if (bytes > KVD_VALUE_MAX)
		return fprintf(stderr, "kv: a value has %d bytes at most\n", KVD_VALUE_MAX), USAGE;
	if (contd_init(&contd))
		return fprintf(stderr, "kv: %s\n", contd_error_text()), UNREACHABLE;
	if (kv_open(&kv, o.provider, o.server, c->operation ? 1 : o.depth, o.timeout_ms)) {
		fprintf(stderr, "kv: %s\n", kv.error);
		rc = UNREACHABLE;
	} else {
		rc = c->operation ? simple(&kv, c->operation, c->words ? argv[optind + 1] : NULL, value, bytes)
				  : bench(&kv, &o);
	}
	kv_close(&kv);
	contd_fini();
	/* A long output may have been written, and refused, before. */
	if (fflush(stdout) || ferror(stdout)) {
		fputs("kv: not everything could be written to standard output\n", stderr);
		rc = UNREACHABLE;
	}
	return rc;
}
