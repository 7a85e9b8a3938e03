/** A request that cannot be fulfilled: a message on stderr, exit code 64 (EX_USAGE of sysexits.h). */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

export const EXIT = { holds: 0, fails: 1, noRecovery: 2, void: 3, usage: 64, broken: 70 } as const;

export const USAGE = `nestjs-perf-load ramp <url> [--from FILE] [--start 10] [--steps 1,2,3,4] [--hold 60s] [--rest 20s] [--gate 'p95<1s errors<1%']
nestjs-perf-load replay <FILE> --target <url> [--speed 1] [--gate '…']
nestjs-perf-load diff <FILE> --primary <url> --secondary <url> --candidate <url>

ramp       Sends so many requests a second (--start), times each step, each for --hold, with a --rest between: which step holds the gate?
           Without --from it asks for the URL itself. GET /perf/snapshot of the application, when it answers, tells why a step failed.
replay     Sends a recording of perf.recording again: sessions in their order, --speed times as fast.
diff       Sends each request of a recording to the running release (--primary), to the same release again (--secondary: what differs
           there is noise) and to the new one (--candidate): what answers differently, or at another speed?

  --from FILE                a recording: *.ndjson or *.ndjson.gz
  --gate 'p95<100ms errors<0.1%'   what must hold: p50, p90, p95, p99, p99.9, mean, max, errors
  --timeout 10s              an answer that takes longer is an error
  --header 'name: value'     sent with each request: what the recording has redacted. Several times for several
  --snapshot-header '…'      the same for GET /perf/snapshot
  --snapshot-path PATH       /perf/snapshot
  --allow 'POST /search'     also sends these; without it only GET and HEAD
  --target-is-mine HOST      targets beside this machine, each named in full
  --json FILE                the result as JSON
  --speed 2                  replay: twice as fast
  --requests-per-route 200   diff: at most, up to 2000; routes with less than 40 are asked again

Exit codes: 0 holds, 1 fails its gate (diff: differs; replay without a gate: nobody answers, or most refuse), 2 does not recover, 3 void (the generator was late), 64 what was asked for is wrong, 70 a defect of this tool.`;
