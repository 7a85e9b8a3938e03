import type { residentBytes } from '../core/resident-set.js';
import type { Description } from './interrupt/probe.js';
import type { openKernelFiles } from './kernel-files.thread.js';
import type { Frame, isApplicationFrame } from './sample.js';
import type { SamplerThreadData, ThreadAnswer, ThreadMessage, ThreadRequest } from './sampler-messages.js';
import type { Position, SourceLines } from './source-lines.js';
import type { Live, LoopHolder, serveLiveness } from './liveness.thread.js';

/** The sampler's thread: samples the main thread's stack, and serves `/live`. Its text is the program (see sampler-source.ts). */
export function samplerThread(
  Lines: typeof SourceLines,
  isAppFrame: typeof isApplicationFrame,
  startLiveness: typeof serveLiveness,
  openKernel: typeof openKernelFiles,
  readRss: typeof residentBytes,
): void {
  const { parentPort, workerData } = process.getBuiltinModule('node:worker_threads');
  const fs = process.getBuiltinModule('node:fs');
  const data = workerData as SamplerThreadData;
  const { words, beat, timing, originMs, probeName, takesSamples, reportsHangs, liveness } = data;
  const { WORD, MODE, UNITS_PER_MS } = beat;
  const inspector = takesSamples ? process.getBuiltinModule('node:inspector') : null;
  /** Without requests the main thread beats too seldom to show a block: its CPU time is read so often instead. */
  const parkedPollMs = 200;
  /** A parked main thread is hot (a job computes) from this CPU time within a poll on, and while it uses this share. */
  const [hotCpuMs, hotShare] = [10, 0.3];
  const hangMs = 1_000;
  const maxFailedSamples = 3;
  /** Samples of a long block become rarer: their interval is this share of the block's age. */
  const intervalShareOfAge = 0.02;
  const maxMappingBytes = 4_000_000;
  /** Timers fire up to this late on an idle machine, milliseconds. */
  const timerMs = 2;
  // Constant, so that V8 compiles it once. No error may leave it: the inspector would run the application's `prepareStackTrace`.
  const expression = `try{this[${JSON.stringify(probeName)}]?.()}catch{}`;
  const lines = new Lines(data.workingDirectory, maxMappingBytes);
  const kernel = openKernel(readRss);
  let timer: NodeJS.Timeout | undefined;
  /** When the timer is due, to measure how late it fires; Infinity once that is counted, or a message has woken this thread. */
  let dueMs = Infinity;
  /** Gives up the sample that is under way; null: none is. */
  let giveUp: (() => void) | null = null;
  /** Number of the last beat that this thread has seen. */
  let watchedSeq = Atomics.load(words, WORD.seq);
  /** When the next regular sample is due, and the next one of a block; the age of the block at the last line about it. */
  let [nextDueMs, nextSampleMs, reportedMs] = [Infinity, 0, 0];
  /** How late this thread woke, and the sum since the last beat: a process that was stopped (SIGSTOP) has blocked nothing. */
  let [lateMs, ownLateMs] = [0, 0];
  let [failedSamples, hasSampled, isStopping] = [0, false, false];
  /** When a sample last met an idle loop: under fake timers it turns, though no beat shows it. */
  let idleSeenMs = -Infinity;
  /** The stack of the last sample, as long as no newer beat has ended its block. */
  let seen: Description | null = null;
  let seenMs = -Infinity;
  let usage = { atMs: nowMs(), ...kernel.readMainUsage() };
  /** CPU time of the main thread, and elapsed time, between the last two polls. */
  let [spentMs, passedMs] = [0, 0];
  let [isHot, isWorking] = [false, false];

  parentPort!.on('message', receive);
  const server =
    liveness === null ? null : startLiveness(liveness, observe, (message) => parentPort!.postMessage(message));
  Atomics.store(words, WORD.started, 1);
  schedule();

  function nowMs(): number {
    return Number(process.hrtime.bigint()) / 1e6 - originMs;
  }

  /** Sets the timer to the next moment with something to do, since wake-ups are what this thread costs. */
  function schedule(): void {
    const mode = Atomics.load(words, WORD.mode);
    if (!takesSamples || (giveUp === null && mode === MODE.stopped)) return;
    const isTicking = giveUp !== null || isHot;
    const waitMs = Math.ceil(isTicking ? timing.tickMs : mode === MODE.awake ? untilNext() : parkedPollMs);
    dueMs = nowMs() + waitMs;
    clearTimeout(timer);
    timer = setTimeout(poll, waitMs);
  }

  function poll(): void {
    countLostTime();
    if (giveUp === null) sampleIfDue();
    else watchSample(giveUp);
    schedule();
  }

  /** A sample without an answer: the main thread is in a native call. */
  function watchSample(end: () => void): void {
    const now = nowMs();
    countDue(now);
    if (Atomics.load(words, WORD.mode) === MODE.stopped) end();
    else if (Atomics.load(words, WORD.seq) === watchedSeq) reportHang(now);
  }

  function receive(request: ThreadRequest): void {
    countOverdue();
    if (request === 'end') return parentPort!.close();
    if (request === 'stop') {
      isStopping = true;
      return giveUp === null ? stop() : undefined;
    }
    if (request === 'wake') {
      dueMs = Infinity;
      return giveUp === null && takesSamples ? poll() : undefined;
    }
    if ('metrics' in request) return server?.receive(request.metrics);
    const { id } = request;
    const answer: ThreadAnswer =
      'paths' in request
        ? { id, files: kernel.readTexts(request.paths, nowMs()) }
        : { id, locations: request.positions.map(locate) };
    parentPort!.postMessage(answer satisfies ThreadMessage);
    // Without a new timer, the time that this answer took would count as a late wake-up.
    schedule();
  }

  function untilNext(): number {
    const now = nowMs();
    const ageMs = measureBeatAge(now);
    const checkMs =
      ageMs >= timing.suspectMs ? Math.min(timing.suspectMs, nextSampleMs - now) : timing.suspectMs - ageMs;
    return Math.max(1, Math.min(checkMs, nextDueMs - now));
  }

  /** Announces the end, and waits for `end`: Node aborts when this thread ends while the main thread cleans up after a sample. */
  function stop(): void {
    clearTimeout(timer);
    server?.close();
    kernel.close();
    if (hasSampled) parentPort!.postMessage({ stopped: true } satisfies ThreadMessage);
    else parentPort!.close();
  }

  /** Adds up the time that the machine took: this thread woke late, or the main thread waited for a CPU. */
  function countLostTime(): void {
    const now = nowMs();
    const before = usage;
    usage = { atMs: now, ...kernel.readMainUsage() };
    [spentMs, passedMs] = [usage.cpuMs - before.cpuMs, now - before.atMs];
    lateMs = Math.max(0, now - dueMs);
    dueMs = Infinity;
    ownLateMs += lateMs;
    const lostMs = Math.max(lateMs > timerMs ? lateMs : 0, usage.queuedMs - before.queuedMs);
    Atomics.add(words, WORD.lostUs, Math.round(1_000 * lostMs));
  }

  /** Behind a SIGSTOP a message may come before the overdue timer, which a new schedule would clear. */
  function countOverdue(): void {
    if (nowMs() - dueMs > timerMs) countLostTime();
  }

  /** Draws the first due time at random, as if the schedule had long been running: a fixed one would always meet the same request. */
  function beginSchedule(now: number): void {
    nextDueMs = now + (1_000 / Atomics.load(words, WORD.rate)) * Math.sqrt(0.25 + 2 * Math.random()) * Math.random();
  }

  /** Counts the regular samples that fell due; false: none did. */
  function countDue(now: number): boolean {
    if (nextDueMs > now) return false;
    const intervalMs = 1_000 / Atomics.load(words, WORD.rate);
    if (now - nextDueMs > 10 * intervalMs) beginSchedule(now);
    while (nextDueMs <= now) {
      Atomics.add(words, WORD.due, 1);
      // Intervals are random: requests may take turns in step with regular samples.
      nextDueMs += intervalMs * (0.5 + Math.random());
    }
    return true;
  }

  function sampleIfDue(): void {
    const now = nowMs();
    const isAwake = Atomics.load(words, WORD.mode) === MODE.awake;
    const seq = Atomics.load(words, WORD.seq);
    const ageMs = measureBeatAge(now);
    if (seq !== watchedSeq) {
      watchedSeq = seq;
      nextSampleMs = 0;
      reportedMs = 0;
      ownLateMs = Math.min(lateMs, ageMs);
      seen = null;
    }
    // Without requests in flight, CPU time shows that a job or a consumer computes.
    isHot = !isAwake && spentMs >= (isHot ? hotShare * passedMs : hotCpuMs);
    if ((isAwake || isHot) && !isWorking) beginSchedule(now);
    isWorking = isAwake || isHot;
    const isSuspect = isHot || ageMs >= (isAwake ? 0 : timing.idleTickMs) + timing.suspectMs;
    const isDue = isWorking && countDue(now);
    if (!isDue && !(isSuspect && now >= nextSampleMs)) return;
    nextSampleMs = now + Math.max(timing.blockedSampleMs, ageMs * intervalShareOfAge) * (0.85 + Math.random() * 0.3);
    requestSample(seq, isSuspect && (liveness !== null || ageMs > hangMs / 2));
  }

  /** Time since the last beat, milliseconds. The word wraps at 32 bits, so the difference is wrapped too. */
  function measureBeatAge(now: number): number {
    return ((now * UNITS_PER_MS - Atomics.load(words, WORD.beatAt)) | 0) / UNITS_PER_MS;
  }

  /** Connects for one sample: during a session V8 keeps the last thousand messages of `console` with their objects, and each costs twice. */
  function requestSample(seq: number, described: boolean): void {
    hasSampled = true;
    const session = new inspector!.Session();
    Atomics.store(words, WORD.askedAt, (nowMs() * UNITS_PER_MS) | 0);
    Atomics.store(words, WORD.described, Number(described));
    let done = false;
    const answered = (answer: boolean | Description | null, failure: Error | null = null): void => {
      if (done) return;
      done = true;
      countOverdue();
      if (answer !== null) failedSamples = 0;
      if (failure !== null) failedSamples += 1;
      if (failure !== null && failedSamples === maxFailedSamples)
        parentPort!.postMessage({ reason: failure.message } satisfies ThreadMessage);
      session.disconnect();
      Atomics.store(words, WORD.connected, 0);
      const description = typeof answer === 'object' ? answer : null;
      if (answer === true || description?.idle === true) idleSeenMs = nowMs();
      else if (description !== null && seq === watchedSeq) [seen, seenMs] = [description, nowMs()];
      if (Atomics.load(words, WORD.seq) === seq) reportHang(nowMs());
      // In the next turn: Node aborts when a thread ends in the turn of its disconnect.
      setImmediate(() => {
        giveUp = null;
        if (isStopping) stop();
        else schedule();
      });
    };
    giveUp = () => answered(null);
    try {
      Atomics.store(words, WORD.connected, 1);
      // `stopBeforeExit` sets `stopped`, then waits while `connected` is 1: in this order no session stays open.
      if (Atomics.load(words, WORD.mode) === MODE.stopped) return answered(null);
      session.connectToMainThread();
      session.post('Runtime.evaluate', { expression, returnByValue: true }, (error, reply) => {
        const value = (reply as { result?: { value?: boolean | Description } } | undefined)?.result?.value;
        answered(value ?? null, error);
      });
    } catch (error) {
      answered(null, error as Error);
    }
  }

  /** Writes a long block to stderr while it lasts: its record comes at its end, if ever, and the main thread's streams are blocked too. */
  function reportHang(now: number): void {
    const blockedMs = Math.min(measureBeatAge(now), now - idleSeenMs);
    if (blockedMs - ownLateMs < hangMs || (reportedMs > 0 && blockedMs < reportedMs * 5)) return;
    reportedMs = blockedMs;
    if (!reportsHangs || Atomics.load(words, WORD.debugged) === 1) return;
    const stack = findHoldingStack(now);
    const [frame] = selectFrames(stack);
    const where = frame === undefined ? '' : ` at ${locate(frame)} (${frame.name ?? 'anonymous'})`;
    const ms = Math.round(blockedMs);
    const handler = stack?.handler === null ? '' : ` (${stack?.handler})`;
    const text =
      stack === null || stack.method === null
        ? `The event loop has been blocked for ${ms} ms and still is`
        : `${stack.method} ${stack.route}${handler} has blocked the event loop for ${ms} ms and still does`;
    try {
      fs.writeSync(2, `[Perf] ${text}${where}\n`);
    } catch {
      // A closed pipe, or a full one: the line is lost.
    }
  }

  /** A native call lets no sample in: what an earlier one saw has been over for most of its block. */
  function findHoldingStack(now: number): Description | null {
    return now - seenMs <= measureBeatAge(now) / 2 ? seen : null;
  }

  function selectFrames(description: Description | null): readonly Frame[] {
    return description?.frames.filter((frame) => isAppFrame(frame, null)) ?? [];
  }

  function observe(): Live {
    const beatAgeMs = Math.max(0, measureBeatAge(nowMs()));
    const isAwake = Atomics.load(words, WORD.mode) === MODE.awake;
    if (beatAgeMs < (isAwake ? 0 : timing.idleTickMs) + timing.thresholdMs) return { beatAgeMs, blocked: null };
    return { beatAgeMs, blocked: { ms: beatAgeMs, ...findHolder() } };
  }

  function findHolder(): LoopHolder {
    // A newer beat has ended the block of the sample.
    const stack = watchedSeq === Atomics.load(words, WORD.seq) ? findHoldingStack(nowMs()) : null;
    if (stack === null) return { route: null, method: null, location: null };
    const frames = reportsHangs ? selectFrames(stack) : [];
    const named = frames.map(({ typeName, name }) => `${typeName}.${name}`);
    return {
      route: stack.method === null ? null : `${stack.method} ${stack.route}`,
      method: named.find((name) => liveness!.methods.has(name)) ?? stack.handler,
      location: frames[0] === undefined ? null : locate(frames[0]),
    };
  }

  function locate(position: Position): string | null {
    const location = lines.locate(position);
    return data.loaderMaps && Lines.isTypeScript(position.file ?? '') ? location!.replace(/:\d+:\d+$/, '') : location;
  }
}
