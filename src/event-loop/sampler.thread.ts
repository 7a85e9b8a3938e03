import type { residentBytes } from '../core/resident-set.js';
import type { KernelTexts } from '../ports/kernel-files.js';
import type { Description } from './interrupt/probe.js';
import type { openMainUsage } from './main-usage.thread.js';
import type { Frame, isApplicationFrame } from './sample.js';
import type { SamplerThreadData, ThreadAnswer, ThreadMessage, ThreadRequest } from './sampler-messages.js';
import type { Position, SourceLines } from './source-lines.js';
import type { Live, LoopHolder, serveWitness } from './witness.thread.js';

/**
 * The sampler's thread: evaluates one expression on top of the main thread's stack, and serves the witness. It starts from its own text
 * (see sampler-source.ts), without imports.
 */
export function samplerThread(
  Lines: typeof SourceLines,
  isApplications: typeof isApplicationFrame,
  startWitness: typeof serveWitness,
  openUsage: typeof openMainUsage,
  readRss: typeof residentBytes,
): void {
  const { parentPort, workerData } = process.getBuiltinModule('node:worker_threads');
  const fs = process.getBuiltinModule('node:fs');
  const data = workerData as SamplerThreadData;
  const { words, beat, timing, originMs, probeName, takesSamples, reportsHangs, witness } = data;
  const { WORD, MODE, UNITS_PER_MS } = beat;
  const inspector = takesSamples ? process.getBuiltinModule('node:inspector') : null;
  /** Without requests the main thread beats too seldom to show that it is blocked: its CPU time does. */
  const parkedPollMs = 200;
  const hotCpuMs = 10;
  const hotShare = 0.3;
  const hangMs = 1_000;
  const maxFailedSamples = 3;
  const intervalShareOfAge = 0.02;
  const maxMappingBytes = 6_000_000;
  /** Timers come this late on a machine with room. */
  const timerMs = 2;
  // Constant text: V8 compiles it once. An error must not leave it: the inspector would format its stack on the spot, with the
  // application's formatter.
  const expression = `try{this[${JSON.stringify(probeName)}]?.()}catch{}`;
  const lines = new Lines(data.workingDirectory, maxMappingBytes);
  const mainUsage = openUsage();

  let timer: NodeJS.Timeout | undefined;
  /** When the timer is due; Infinity: something else has woken this thread. */
  let dueMs = Infinity;
  /** Ends the sample that is under way; null: none is. */
  let giveUp: (() => void) | null = null;
  let watchedSeq = Atomics.load(words, WORD.seq);
  let [nextDueMs, nextSampleMs, reportedMs] = [Infinity, 0, 0];
  /** How late this thread woke, and the sum since the loop last turned: a process that was stopped has blocked nothing. */
  let lateMs = 0;
  let ownLateMs = 0;
  let failedSamples = 0;
  let [hasSampled, isStopping] = [false, false];
  /** Until when the loop counts as turning though no beat shows it, as under fake timers: samples met no code. */
  let idleMs = -Infinity;
  let seen: Description | null = null;
  let usage = { atMs: nowMs(), ...mainUsage.read() };
  let [spentMs, passedMs] = [0, 0];
  let [isHot, isWorking] = [false, false];

  parentPort!.on('message', receive);
  const server =
    witness === null ? null : startWitness(witness, observe, (message) => parentPort!.postMessage(message));
  if (takesSamples) Atomics.store(words, WORD.started, 1);
  schedule();

  function nowMs(): number {
    return Number(process.hrtime.bigint()) / 1e6 - originMs;
  }

  /** Wake-ups are what this thread costs: none before there can be something to do. */
  function schedule(): void {
    const mode = Atomics.load(words, WORD.mode);
    if (!takesSamples || (giveUp === null && mode === MODE.stopped)) return;
    const isTicking = giveUp !== null || isHot;
    const waitMs = Math.ceil(isTicking ? timing.tickMs : mode === MODE.awake ? untilNext() : parkedPollMs);
    dueMs = nowMs() + waitMs;
    clearTimeout(timer);
    timer = setTimeout(turn, waitMs);
  }

  function turn(): void {
    account(dueMs);
    if (giveUp === null) sample();
    else watchSample(giveUp);
    schedule();
  }

  /** The main thread is in a native call and cannot answer. */
  function watchSample(end: () => void): void {
    const now = nowMs();
    countDue(now);
    if (Atomics.load(words, WORD.mode) === MODE.stopped) end();
    else if (Atomics.load(words, WORD.seq) === watchedSeq) reportHang(now);
  }

  function receive(request: ThreadRequest): void {
    if (request === 'end') return parentPort!.close();
    if (request === 'stop') {
      isStopping = true;
      return giveUp === null ? stop() : undefined;
    }
    if (request === 'wake') {
      dueMs = Infinity;
      return giveUp === null && takesSamples ? turn() : undefined;
    }
    if ('metrics' in request) return server?.receive(request.metrics);
    const { id } = request;
    const answer: ThreadAnswer =
      'paths' in request ? { id, files: read(request.paths) } : { id, locations: request.positions.map(locate) };
    parentPort!.postMessage(answer satisfies ThreadMessage);
    // The time of this answer is no sign of a slow machine.
    schedule();
  }

  function read(paths: readonly string[]): KernelTexts {
    const [atMs, cpu, texts] = [nowMs(), process.cpuUsage(), new Map<string, string>()];
    for (const path of paths) {
      try {
        texts.set(path, fs.readFileSync(path, 'utf8'));
      } catch {
        texts.set(path, '');
      }
    }
    return { atMs, cpu, rssBytes: readRss(), texts };
  }

  function untilNext(): number {
    const now = nowMs();
    const staleMs = measureStale(now);
    const checkMs =
      staleMs >= timing.suspectMs ? Math.min(timing.suspectMs, nextSampleMs - now) : timing.suspectMs - staleMs;
    return Math.max(1, Math.min(checkMs, nextDueMs - now));
  }

  /** Node aborts when the main thread cleans up after a sample while this thread ends: so it announces its end, and waits. */
  function stop(): void {
    clearTimeout(timer);
    server?.close();
    mainUsage.close();
    if (hasSampled) parentPort!.postMessage({ stopped: true } satisfies ThreadMessage);
    else parentPort!.close();
  }

  /** Adds up what the machine took: this thread woke late, or the main thread was in the run queue meanwhile. */
  function account(wakeMs: number): void {
    const now = nowMs();
    const before = usage;
    usage = { atMs: now, ...mainUsage.read() };
    [spentMs, passedMs] = [usage.cpuMs - before.cpuMs, now - before.atMs];
    lateMs = Math.max(0, now - wakeMs);
    ownLateMs += lateMs;
    const lostMs = Math.max(lateMs > timerMs ? lateMs : 0, usage.queuedMs - before.queuedMs);
    Atomics.add(words, WORD.lostUs, Math.round(1_000 * lostMs));
  }

  /** Draws the first moment as in a schedule that has long been running: a sample at once would always meet the first request. */
  function beginSchedule(now: number): void {
    nextDueMs = now + (1_000 / Atomics.load(words, WORD.rate)) * Math.sqrt(0.25 + 2 * Math.random()) * Math.random();
  }

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

  function sample(): void {
    const now = nowMs();
    const isAwake = Atomics.load(words, WORD.mode) === MODE.awake;
    const seq = Atomics.load(words, WORD.seq);
    const staleMs = measureStale(now);
    if (seq !== watchedSeq) {
      watchedSeq = seq;
      nextSampleMs = 0;
      reportedMs = 0;
      ownLateMs = Math.min(lateMs, staleMs);
      seen = null;
    }
    // A job or a consumer computes, though no request keeps the main thread awake.
    isHot = !isAwake && spentMs >= (isHot ? hotShare * passedMs : hotCpuMs);
    if ((isAwake || isHot) && !isWorking) beginSchedule(now);
    isWorking = isAwake || isHot;
    const isStale = isHot || staleMs >= (isAwake ? 0 : timing.idleTickMs) + timing.suspectMs;
    const isDue = isWorking && countDue(now);
    if (!isDue && !(isStale && now >= nextSampleMs)) return;
    nextSampleMs = now + Math.max(timing.blockedSampleMs, staleMs * intervalShareOfAge) * (0.85 + Math.random() * 0.3);
    requestSample(seq, isStale && (witness !== null || staleMs > hangMs / 2));
  }

  function measureStale(now: number): number {
    return ((now * UNITS_PER_MS - Atomics.load(words, WORD.beatAt)) | 0) / UNITS_PER_MS;
  }

  function requestSample(seq: number, described: boolean): void {
    hasSampled = true;
    const session = new inspector!.Session();
    Atomics.store(words, WORD.askedAt, (nowMs() * UNITS_PER_MS) | 0);
    Atomics.store(words, WORD.described, Number(described));
    let done = false;
    const answered = (answer: boolean | Description | null, failure: Error | null = null): void => {
      if (done) return;
      done = true;
      if (answer !== null) failedSamples = 0;
      if (failure !== null) failedSamples += 1;
      if (failure !== null && failedSamples === maxFailedSamples)
        parentPort!.postMessage({ reason: failure.message } satisfies ThreadMessage);
      session.disconnect();
      Atomics.store(words, WORD.connected, 0);
      const description = typeof answer === 'object' ? answer : null;
      if (answer === true || description?.idle === true) idleMs = nowMs();
      else if (description !== null && seq === watchedSeq) seen = description;
      if (Atomics.load(words, WORD.seq) === seq) reportHang(nowMs());
      // It goes on in the turn after the disconnect: ending a thread in that turn has aborted processes.
      setImmediate(() => {
        giveUp = null;
        if (isStopping) stop();
        else schedule();
      });
    };
    giveUp = () => answered(null);
    try {
      Atomics.store(words, WORD.connected, 1);
      // The main thread stops this one first, then waits for what is connected: a process that ends meets no session.
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

  /** A block that never ends is never recorded: it is written to stderr, past the main thread's own streams. */
  function reportHang(now: number): void {
    const staleMs = Math.min(measureStale(now), now - idleMs);
    if (staleMs - ownLateMs < hangMs || (reportedMs > 0 && staleMs < reportedMs * 5)) return;
    reportedMs = staleMs;
    if (!reportsHangs || Atomics.load(words, WORD.debugged) === 1) return;
    const [frame] = selectFrames(seen);
    const where = frame === undefined ? '' : ` at ${locate(frame)} (${frame.name ?? 'anonymous'})`;
    const ms = Math.round(staleMs);
    const handler = seen?.handler === null ? '' : ` (${seen?.handler})`;
    const text =
      seen === null || seen.method === null
        ? `The event loop has been blocked for ${ms} ms and still is`
        : `${seen.method} ${seen.route}${handler} has blocked the event loop for ${ms} ms and still does`;
    writeToStderr(`[Perf] ${text}${where}\n`);
  }

  function selectFrames(description: Description | null): readonly Frame[] {
    return description?.frames.filter((frame) => isApplications(frame, null)) ?? [];
  }

  function observe(): Live {
    const beatAgeMs = Math.max(0, measureStale(nowMs()));
    const isAwake = Atomics.load(words, WORD.mode) === MODE.awake;
    if (beatAgeMs < (isAwake ? 0 : timing.idleTickMs) + timing.thresholdMs) return { beatAgeMs, blocked: null };
    return { beatAgeMs, blocked: { ms: beatAgeMs, ...findHolder() } };
  }

  function findHolder(): LoopHolder {
    // A newer beat has ended the block of the sample.
    const stack = watchedSeq === Atomics.load(words, WORD.seq) ? seen : null;
    if (stack === null) return { route: null, method: null, location: null };
    const frames = reportsHangs ? selectFrames(stack) : [];
    const named = frames.map(({ typeName, name }) => `${typeName}.${name}`);
    return {
      route: stack.method === null ? null : `${stack.method} ${stack.route}`,
      method: named.find((name) => witness!.methods.has(name)) ?? stack.handler,
      location: frames[0] === undefined ? null : locate(frames[0]),
    };
  }

  function locate(position: Position): string | null {
    const location = lines.locate(position);
    return data.loaderMaps && Lines.isTypeScript(position.file ?? '') ? location!.replace(/:\d+:\d+$/, '') : location;
  }

  function writeToStderr(line: string): void {
    for (let attempt = 0; attempt < 20; attempt++) {
      try {
        return void fs.writeSync(2, line);
      } catch (error) {
        // A full pipe is worth waiting for; a closed one is not.
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
      }
    }
  }
}
