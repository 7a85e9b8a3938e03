import type { MessagePort } from 'node:worker_threads';
import type { MODE, UNITS_PER_MS, WORD } from './beat.js';
import type { Timing } from './event-loop.options.js';
import type { Description } from './interrupt/probe.js';
import type { Frame, isApplicationFrame } from './sample.js';
import type { Mappings, Position, SourceLines } from './source-lines.js';
import type { LoopHolder } from './witness.thread.js';

/** The thread's input. Plain data: it crosses to another thread. */
export interface SamplerThreadData {
  readonly words: Int32Array;
  /** The thread's function can import nothing. */
  readonly beat: { readonly WORD: typeof WORD; readonly MODE: typeof MODE; readonly UNITS_PER_MS: typeof UNITS_PER_MS };
  readonly timing: Timing;
  /** Milliseconds on the kernel's monotonic clock when the main thread's `performance.now()` was 0. */
  readonly originMs: number;
  /** The property of the main context's global object that holds the probe. */
  readonly probeName: string;
  /** False: hangs are not written to stderr. */
  readonly reportsHangs: boolean;
  /** The main thread has maps of its own for files that a loader has transpiled. */
  readonly loaderMaps: boolean;
  /** Receives a {@link LoopHolder} from each stack of a blocked loop, named by these provider methods; null without `port`. */
  readonly witness: { readonly told: MessagePort; readonly methods: readonly string[] } | null;
}

/** Asks where positions are in the sources. */
export interface LocationsRequest {
  readonly id: number;
  readonly positions: readonly Position[];
}
/** Messages of the thread. */
export type ThreadMessage =
  | { readonly id: number; readonly locations: readonly (string | null)[] }
  /** Samples fail one after the other: the inspector cannot be used here. */
  | { readonly reason: string }
  /** It has stopped and takes no more samples: it waits for the permission to end. */
  | { readonly stopped: true };

/**
 * The sampler's thread: has one expression evaluated on top of the main thread's stack, some times a second while there is
 * work, often while the beat is stale. It starts from its own source text (see sampler-source.ts): it imports nothing.
 */
export function samplerThread(
  Lines: typeof SourceLines,
  Decoded: typeof Mappings,
  isApplications: typeof isApplicationFrame,
): void {
  const { parentPort, receiveMessageOnPort, workerData } = process.getBuiltinModule('node:worker_threads');
  const { Session } = process.getBuiltinModule('node:inspector');
  const fs = process.getBuiltinModule('node:fs');
  const { words, beat, timing, originMs, probeName, reportsHangs, loaderMaps, witness } =
    workerData as SamplerThreadData;
  const { WORD, MODE, UNITS_PER_MS } = beat;
  /** Without requests the main thread beats too seldom to show that it stands still: its CPU time does. */
  const parkedPollMs = 200;
  const hotCpuMs = 10;
  const hotShare = 0.3;
  /** A block that lasts longer is reported on stderr while it lasts. */
  const hangMs = 1_000;
  /** So many failures in a row are reported. */
  const maxFailedSamples = 3;
  /** Samples of a long block become rarer by this share of its age. */
  const thinning = 0.02;
  /** The mappings of a bundle of Nest and its dependencies have 3 MB. */
  const maxMappingBytes = 6_000_000;
  // Constant text: V8 compiles it once. An error must not leave it: the inspector would format its stack on the spot, with the
  // application's formatter.
  const expression =
    `try{(function perfProbe(probe){return probe===undefined?0:probe()})` +
    `(this[${JSON.stringify(probeName)}])}catch{}`;
  const workingDirectory = currentDirectory();
  const providerMethods = new Set(witness?.methods);
  const sleeper = new Int32Array(new SharedArrayBuffer(4));
  const schedstatFd = openSchedstat();
  const schedstatText = Buffer.alloc(96);

  let watchedSeq = Atomics.load(words, WORD.seq);
  let nextDueMs = Infinity;
  let nextSampleMs = 0;
  let reportedMs = 0;
  /** Since the loop last turned: a process that was stopped has blocked nothing. */
  let ownLateMs = 0;
  let lastLateMs = 0;
  let failedSamples = 0;
  let hasSampled = false;
  /** Until when the loop counts as turning though no beat shows it, as under fake timers: samples met no code. */
  let idleMs = -Infinity;
  let lines: SourceLines | null = null;
  let seen: Description | null = null;
  /** The last poll while there was work, with the main thread's run delay; null at rest. */
  let polled: { readonly atMs: number; readonly stale: boolean; readonly runDelayUs: number } | null = null;
  /** CPU time of the main thread at the last poll; null where that was with requests. */
  let cpu: { readonly atMs: number; readonly ms: number } | null = null;
  let isHot = false;
  /** Requests, or computing without them. */
  let isWorking = false;

  watch();

  /** Monotonic milliseconds of the main thread. */
  function nowMs(): number {
    return Number(process.hrtime.bigint()) / 1e6 - originMs;
  }

  function watch(): void {
    for (;;) {
      const mode = Atomics.load(words, WORD.mode);
      if (mode === MODE.stopped) return stop();
      const waitMs = mode === MODE.awake ? untilNext() : isHot ? timing.tickMs : parkedPollMs;
      const beforeMs = nowMs();
      lastLateMs = 0;
      if (Atomics.wait(words, WORD.mode, mode, waitMs) === 'timed-out') account(beforeMs, waitMs);
      answerLocations();
      Atomics.add(words, WORD.polls, 1);
      // A sample is answered through this thread's own event loop, so this loop must be left for it.
      if (sample()) return;
    }
  }

  function answerLocations(): void {
    for (;;) {
      const received = receiveMessageOnPort(parentPort!);
      if (received === undefined) return;
      const { id, positions } = received.message as LocationsRequest;
      send({ id, locations: positions.map(locationOf) });
    }
  }

  /** Wake-ups are what this thread costs: none before there can be something to do. */
  function untilNext(): number {
    const now = nowMs();
    const staleMs = staleOf(now);
    const suspiciousMs = staleMs >= timing.suspectMs ? timing.tickMs : timing.suspectMs - staleMs;
    return Math.max(0.2, Math.min(suspiciousMs, nextDueMs - now) + 0.2);
  }

  /** Node aborts when the main thread cleans up after a sample while this thread ends: so it announces its end, and waits. */
  function stop(): void {
    if (schedstatFd !== null) fs.closeSync(schedstatFd);
    if (!hasSampled) return;
    parentPort!.on('message', (message: unknown) => {
      if (message === 'end') parentPort!.close();
    });
    send({ stopped: true });
  }

  function send(message: ThreadMessage): void {
    parentPort!.postMessage(message);
  }

  /** Own lateness: how much of a block was the machine's fault. */
  function account(beforeMs: number, waitMs: number): void {
    lastLateMs = Math.max(0, nowMs() - beforeMs - waitMs);
    ownLateMs += lastLateMs;
    if (lastLateMs > 1) Atomics.add(words, WORD.starvedUs, Math.round(lastLateMs * 1000));
  }

  /** Microseconds of the main thread on a CPU and in the run queue; null where the kernel does not publish them. */
  function readSchedstat(): [onCpuUs: number, runDelayUs: number] | null {
    if (schedstatFd === null) return null;
    try {
      const length = fs.readSync(schedstatFd, schedstatText, 0, schedstatText.length, 0);
      // "time on CPU, time in the run queue, slices", in nanoseconds: Documentation/scheduler/sched-stats.rst
      const [onCpu, inQueue] = schedstatText.toString('latin1', 0, length).split(' ');
      return [Number(onCpu) / 1000, Number(inQueue) / 1000];
    } catch {
      // Classification has one witness less.
      return null;
    }
  }

  function cpuMs(): number {
    const known = readSchedstat();
    if (known !== null) return known[0] / 1000;
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
  }

  /** Adds the main thread's time in the run queue since the last poll, where it stood still, or this thread came too late to know. */
  function accountRunDelay(now: number, stale: boolean): void {
    const known = readSchedstat();
    if (known === null) return;
    const before = polled;
    polled = { atMs: now, stale, runDelayUs: known[1] };
    if (before === null || !(stale || before.stale || now - before.atMs > timing.thresholdMs / 2)) return;
    Atomics.add(words, WORD.runDelayUs, Math.round(known[1] - before.runDelayUs));
  }

  /** Draws the first moment as in a schedule that has long been running: a sample at once would always meet the first request. */
  function beginSchedule(now: number): void {
    const perSecond = Atomics.load(words, WORD.rate);
    nextDueMs = now + (1_000 / perSecond) * Math.sqrt(0.25 + 2 * Math.random()) * Math.random();
  }

  /** Counts the moments of the sampling rate that have passed. */
  function countDue(now: number): boolean {
    if (nextDueMs > now) return false;
    const intervalMs = 1_000 / Atomics.load(words, WORD.rate);
    // The thread was not scheduled.
    if (now - nextDueMs > 10 * intervalMs) beginSchedule(now);
    while (nextDueMs <= now) {
      Atomics.add(words, WORD.due, 1);
      // Not regular: requests may take turns in step with the samples.
      nextDueMs += intervalMs * (0.5 + Math.random());
    }
    return true;
  }

  /** Whether the main thread computes though no request keeps it awake: a job, a consumer. */
  function isComputing(now: number): boolean {
    const before = cpu;
    cpu = { atMs: now, ms: cpuMs() };
    if (before === null) return false;
    const spentMs = cpu.ms - before.ms;
    return isHot ? spentMs >= hotShare * (cpu.atMs - before.atMs) : spentMs >= hotCpuMs;
  }

  /** Takes a sample when it is time; true when one is under way. */
  function sample(): boolean {
    const now = nowMs();
    const isAwake = Atomics.load(words, WORD.mode) === MODE.awake;
    const seq = Atomics.load(words, WORD.seq);
    if (seq !== watchedSeq) {
      watchedSeq = seq;
      nextSampleMs = 0;
      reportedMs = 0;
      // It may have turned before that, unseen.
      ownLateMs = Math.min(lastLateMs, staleOf(now));
      seen = null;
    }
    const staleMs = staleOf(now);
    if (isAwake) cpu = null;
    const wasWorking = isWorking;
    isHot = !isAwake && isComputing(now);
    isWorking = isAwake || isHot;
    if (isWorking && !wasWorking) beginSchedule(now);
    const isStale = isHot || staleMs >= (isAwake ? 0 : timing.idleTickMs) + timing.suspectMs;
    if (isAwake || isStale) accountRunDelay(now, isStale);
    else polled = null;
    const isDue = isWorking && countDue(now);
    if (!isDue && !(isStale && now >= nextSampleMs)) {
      if (isStale) reportHang(now);
      return false;
    }
    nextSampleMs = now + Math.max(timing.blockedSampleMs, staleMs * thinning) * (0.85 + Math.random() * 0.3);
    ask(seq, isStale && (witness !== null || staleMs > hangMs / 2));
    return true;
  }

  function staleOf(now: number): number {
    const units = (now * UNITS_PER_MS - Atomics.load(words, WORD.beatAt)) | 0;
    return units / UNITS_PER_MS;
  }

  function ask(seq: number, described: boolean): void {
    hasSampled = true;
    const session = new Session();
    let beforeMs = nowMs();
    Atomics.store(words, WORD.askedAt, (beforeMs * UNITS_PER_MS) | 0);
    Atomics.store(words, WORD.described, Number(described));
    // Keeps this thread alive and watching while the main thread is in a native call and cannot answer.
    const waiting = setInterval(() => {
      account(beforeMs, timing.tickMs);
      beforeMs = nowMs();
      countDue(beforeMs);
      accountRunDelay(beforeMs, Atomics.load(words, WORD.seq) === seq);
      Atomics.add(words, WORD.polls, 1);
      if (Atomics.load(words, WORD.mode) === MODE.stopped) answered(null);
      else if (Atomics.load(words, WORD.seq) === seq) reportHang(beforeMs);
    }, timing.tickMs);
    let done = false;
    const answered = (answer: number | Description | null, failure: unknown = null): void => {
      if (done) return;
      done = true;
      if (answer !== null) failedSamples = 0;
      else if (failure !== null) sampleFailed(failure);
      clearInterval(waiting);
      session.disconnect();
      Atomics.store(words, WORD.connected, 0);
      if (typeof answer === 'object' && answer !== null && seq === watchedSeq) seen = answer;
      if (seen !== null && seen === answer && !seen.idle) tellWitness(seen, seq);
      if (answer === 2 || (typeof answer === 'object' && answer?.idle === true)) idleMs = nowMs();
      // Not in the turn of the disconnect: ending a thread there has aborted processes.
      setImmediate(watch);
    };
    try {
      Atomics.store(words, WORD.connected, 1);
      // The main thread stops this one first, then waits for what is connected: a process that ends meets no session.
      if (Atomics.load(words, WORD.mode) === MODE.stopped) return answered(null);
      session.connectToMainThread();
      session.post('Runtime.evaluate', { expression, returnByValue: true }, (error, reply) => {
        const value = (reply as { result?: { value?: number | Description } } | undefined)?.result?.value;
        answered(value ?? null, error);
      });
    } catch (error) {
      answered(null, error);
    }
  }

  /** One may be lost while another session disconnects, or the main thread ends. */
  function sampleFailed(failure: unknown): void {
    failedSamples += 1;
    if (failedSamples !== maxFailedSamples) return;
    send({ reason: failure instanceof Error ? failure.message : 'no answer' });
  }

  /** A block that never ends is never recorded: it is written to stderr, past the main thread's own streams. */
  function reportHang(now: number): void {
    const staleMs = Math.min(staleOf(now), now - idleMs);
    if (staleMs - ownLateMs < hangMs || (reportedMs > 0 && staleMs < reportedMs * 5)) return;
    reportedMs = staleMs;
    // A breakpoint is no hang.
    if (!reportsHangs || Atomics.load(words, WORD.debugged) === 1) return;
    const [frame] = applicationFrames(seen);
    const where = frame === undefined ? '' : ` at ${locationOf(frame)} (${frame.name ?? 'anonymous'})`;
    const ms = Math.round(staleMs);
    const handler = seen?.handler === null ? '' : ` (${seen?.handler})`;
    const text =
      seen === null || seen.method === null
        ? `The event loop has been blocked for ${ms} ms and still is`
        : `${seen.method} ${seen.route}${handler} blocks the event loop for ${ms} ms and still does`;
    writeToStderr(`[Perf] ${text}${where}\n`);
  }

  /** Frames of the application's code, innermost first. */
  function applicationFrames(description: Description | null): readonly Frame[] {
    const frames = description?.frames ?? [];
    const below = frames.slice(frames.findIndex(({ name }) => name === 'perfProbe') + 2);
    return below.filter((frame) => isApplications(frame, null));
  }

  function tellWitness(stack: Description, seq: number): void {
    if (witness === null) return;
    const frames = reportsHangs ? applicationFrames(stack) : [];
    const named = frames.map(({ typeName, name }) => `${typeName}.${name}`);
    const holder: LoopHolder = {
      seq,
      route: stack.method === null ? null : `${stack.method} ${stack.route}`,
      method: named.find((name) => providerMethods.has(name)) ?? stack.handler,
      location: frames[0] === undefined ? null : locationOf(frames[0]),
    };
    witness.told.postMessage(holder);
  }

  function locationOf({ file, line, column }: Position): string | null {
    try {
      lines ??= new Lines(workingDirectory, maxMappingBytes, Decoded);
      const location = lines.locationOf({ file, line, column });
      return loaderMaps && Lines.isTypeScript(file ?? '') ? location!.replace(/:\d+:\d+$/, '') : location;
    } catch {
      // The line is worth more than its map; an error here would end the thread in the middle of a hang.
      return file === null ? null : `${file}:${line}:${column}`;
    }
  }

  function writeToStderr(line: string): void {
    for (let attempt = 0; attempt < 20; attempt++) {
      try {
        fs.writeSync(2, line);
        return;
      } catch (error) {
        // A full pipe is worth waiting for; a closed one is not.
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return;
        Atomics.wait(sleeper, 0, 0, 5);
      }
    }
  }

  function openSchedstat(): number | null {
    try {
      return fs.openSync(`/proc/${process.pid}/task/${process.pid}/schedstat`, 'r');
    } catch {
      // Only Linux has it.
      return null;
    }
  }

  function currentDirectory(): string | null {
    try {
      return process.cwd();
    } catch {
      // It has been deleted.
      return null;
    }
  }
}
