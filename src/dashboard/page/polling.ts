import { useEffect, useState } from 'preact/hooks';
import type { DashboardData, Scope } from '../view.js';

const EVERY_MS = 2_000;
/** While the page is hidden, or the server does not answer. */
const SLOWLY_MS = 10_000;
const IDLE_AFTER_MS = 15 * 60_000;
const TIMEOUT_MS = 10_000;
/** Time between two checks whether a poll is due. */
const TICK_MS = 200;

/** Events of somebody who is here. */
const SIGNS = ['pointermove', 'pointerdown', 'keydown', 'wheel', 'touchstart'];

export type Link = 'loading' | 'live' | 'paused' | 'idle' | 'lost' | 'refused';

interface Question {
  /** Null: all pods where the server knows them. */
  readonly scope: Scope | null;
  readonly filter: string;
  readonly routeId: string | null;
}

interface Polled {
  readonly state: DashboardData | null;
  readonly link: Link;
  readonly everyMs: number;
}

/** Polls the server. Nothing is sent while paused, or when nobody has been here for long. */
export function usePolling(question: Question): Poller {
  const [, render] = useState<Polled | null>(null);
  const [poller] = useState(() => new Poller(question, render));
  poller.question = question;
  // A new question should not wait for the next turn.
  useEffect(() => poller.pollSoon(), [question.scope, question.filter, question.routeId]);
  useEffect(() => poller.start(), []);
  return poller;
}

export class Poller {
  polled: Polled = { state: null, link: 'loading', everyMs: EVERY_MS };
  private dueAt = 0;
  private isBusy = false;
  private seenAt = Date.now();

  constructor(
    public question: Question,
    private readonly render: (polled: Polled) => void,
  ) {}

  start(): void {
    for (const event of SIGNS) addEventListener(event, this.noteViewer, { passive: true });
    document.addEventListener('visibilitychange', () => {
      if (document.visibilityState !== 'visible') return;
      this.noteViewer();
      this.pollSoon();
    });
    void this.tick();
    setInterval(() => void this.tick(), TICK_MS);
  }

  pollSoon(): void {
    this.dueAt = 0;
  }

  readonly pause = (): void => this.update({ link: 'paused' });

  readonly resume = (): void => {
    this.seenAt = Date.now();
    this.update({ link: this.polled.state === null ? 'loading' : 'live' });
    this.pollSoon();
  };

  private readonly noteViewer = (): void => {
    this.seenAt = Date.now();
    if (this.polled.link === 'idle') this.resume();
  };

  private async tick(): Promise<void> {
    const now = Date.now();
    if (this.isStopped() || this.isBusy || now < this.dueAt) return;
    if (now - this.seenAt > IDLE_AFTER_MS) return this.update({ link: 'idle' });
    this.isBusy = true;
    // A question that comes meanwhile is due at once.
    this.dueAt = Infinity;
    const link = await this.load().catch((): Link => 'lost');
    this.isBusy = false;
    const everyMs = link === 'live' && document.visibilityState === 'visible' ? EVERY_MS : SLOWLY_MS;
    if (this.dueAt === Infinity) this.dueAt = now + everyMs;
    if (!this.isStopped()) this.update({ link, everyMs });
  }

  private isStopped(): boolean {
    return this.polled.link === 'paused' || this.polled.link === 'idle';
  }

  private async load(): Promise<Link> {
    const { scope, filter, routeId } = this.question;
    const query = new URLSearchParams();
    if (scope !== null) query.set('scope', scope);
    if (filter !== '') query.set('filter', filter);
    if (routeId !== null) query.set('route', routeId);
    const response = await fetch(`data?${query}`, { cache: 'no-store', signal: AbortSignal.timeout(TIMEOUT_MS) });
    if (response.status === 401 || response.status === 403) return 'refused';
    if (!response.ok) throw new Error(String(response.status));
    const state = (await response.json()) as DashboardData;
    if (isOfOtherPage(state.assets)) location.reload();
    else this.update({ state });
    return 'live';
  }

  private update(fresh: Partial<Polled>): void {
    this.polled = { ...this.polled, ...fresh };
    this.render(this.polled);
  }
}

/** A new release has come: its page may read its data otherwise. Once for each, since two releases may run side by side. */
function isOfOtherPage(assets: string): boolean {
  if (document.querySelector(`script[src="${assets}"]`) !== null) return false;
  if (sessionStorage.getItem('perf-reloaded') === assets) return false;
  sessionStorage.setItem('perf-reloaded', assets);
  return true;
}
