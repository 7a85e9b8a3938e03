import { useEffect, useRef, useState } from 'preact/hooks';
import type { DashboardData } from '../view.js';
import { merged, type State } from './state.js';

const EVERY_MS = 2_000;
const HIDDEN_EVERY_MS = 10_000;
const MAX_EVERY_MS = 60_000;
/** An answer that cost the application more is asked for half as often. */
const DEAR_MS = 50;
const MAX_SLOWDOWN = 16;
const IDLE_AFTER_MS = 15 * 60_000;
const TIMEOUT_MS = 10_000;

/** Of somebody who is here. */
const SIGNS = ['pointermove', 'pointerdown', 'keydown', 'wheel', 'touchstart'];

/** How it stands between page and server. */
export type Link = 'loading' | 'live' | 'paused' | 'idle' | 'lost' | 'refused' | 'full';

export interface Question {
  readonly filter: string;
  readonly routeId: number | null;
}

export interface Polled {
  readonly state: State | null;
  readonly link: Link;
  /** Of now; grows when answers are dear, when the page is hidden, and while the server does not answer. */
  readonly everyMs: number;
  readonly pause: () => void;
  readonly resume: () => void;
}

/** One name a tab: whoever loads the page again is not another viewer. */
const VIEWER = sessionStorage.getItem('perf-viewer') ?? newViewer();

function newViewer(): string {
  const bytes = Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) => byte.toString(16).padStart(2, '0'));
  const name = bytes.join('');
  sessionStorage.setItem('perf-viewer', name);
  return name;
}

/** Asks the server again and again for what has changed. Nothing is asked while paused, or when nobody has been here for long. */
export function usePolling(question: Question): Polled {
  const [state, setState] = useState<State | null>(null);
  const [link, setLink] = useState<Link>('loading');
  const [everyMs, setEveryMs] = useState(EVERY_MS);
  const asked = useRef(question);
  const poller = useRef<Poller | null>(null);
  asked.current = question;
  useEffect(() => {
    const own = new Poller(() => asked.current, setState, setLink, setEveryMs);
    poller.current = own;
    own.start();
    return () => own.stop();
  }, []);
  // What is asked for now should not wait for the next turn.
  useEffect(() => poller.current?.soon(), [question.filter, question.routeId]);
  return {
    state,
    link,
    everyMs,
    pause: () => poller.current?.pause(),
    resume: () => poller.current?.resume(),
  };
}

class Poller {
  private state: State | null = null;
  private timer = 0;
  private slowdown = 1;
  private failures = 0;
  private seenAt = Date.now();
  private link: Link = 'loading';
  private busy = false;
  /** Asked for while an answer was under way. */
  private again = false;

  constructor(
    private readonly question: () => Question,
    private readonly setState: (state: State) => void,
    private readonly tellLink: (link: Link) => void,
    private readonly tellEvery: (ms: number) => void,
  ) {}

  start(): void {
    for (const event of SIGNS) addEventListener(event, this.isHere, { passive: true });
    document.addEventListener('visibilitychange', this.shown);
    void this.poll();
  }

  stop(): void {
    clearTimeout(this.timer);
    for (const event of SIGNS) removeEventListener(event, this.isHere);
    document.removeEventListener('visibilitychange', this.shown);
  }

  pause(): void {
    clearTimeout(this.timer);
    this.setLink('paused');
  }

  resume(): void {
    this.seenAt = Date.now();
    this.setLink(this.state === null ? 'loading' : 'live');
    this.soon();
  }

  soon(): void {
    if (this.link === 'paused' || this.link === 'idle') return;
    if (this.busy) this.again = true;
    else this.later(150);
  }

  private readonly isHere = (): void => {
    this.seenAt = Date.now();
    if (this.link === 'idle') this.resume();
  };

  private readonly shown = (): void => {
    if (document.visibilityState === 'visible') {
      this.isHere();
      this.soon();
    }
  };

  private async poll(): Promise<void> {
    if (Date.now() - this.seenAt > IDLE_AFTER_MS) return this.setLink('idle');
    this.busy = true;
    this.again = false;
    const link = await this.ask().catch((): Link => 'lost');
    this.busy = false;
    // Paused while the answer was under way.
    if (this.link === 'paused') return;
    this.failures = link === 'live' ? 0 : this.failures + 1;
    this.setLink(link);
    this.later(this.again ? 0 : this.everyMs());
  }

  private async ask(): Promise<Link> {
    const { filter, routeId } = this.question();
    const query = new URLSearchParams({ since: this.state?.cursor ?? '', viewer: VIEWER });
    if (filter !== '') query.set('filter', filter);
    if (routeId !== null) query.set('route', String(routeId));
    const response = await fetch(`data?${query}`, { cache: 'no-store', signal: AbortSignal.timeout(TIMEOUT_MS) });
    if (response.status === 401 || response.status === 403) return 'refused';
    if (response.status === 429) return 'full';
    if (!response.ok) throw new Error(String(response.status));
    const answer = (await response.json()) as DashboardData;
    if (isOfOtherPage(answer.assets)) {
      location.reload();
      return this.link;
    }
    this.slowdown =
      answer.tookMs > DEAR_MS ? Math.min(MAX_SLOWDOWN, this.slowdown * 2) : Math.max(1, this.slowdown / 2);
    this.state = merged(this.state, answer);
    this.setState(this.state);
    return 'live';
  }

  private everyMs(): number {
    const ms = document.visibilityState === 'hidden' ? HIDDEN_EVERY_MS : EVERY_MS;
    const patience = this.link === 'refused' || this.link === 'full' ? 8 : 2 ** Math.min(4, this.failures);
    return Math.min(MAX_EVERY_MS, ms * Math.max(this.slowdown, patience));
  }

  private later(ms: number): void {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => void this.poll(), ms);
    if (ms >= EVERY_MS) this.tellEvery(ms);
  }

  private setLink(link: Link): void {
    this.link = link;
    this.tellLink(link);
  }
}

/** A new release has come: its page may read its data otherwise. Once for each, since two releases may run side by side. */
function isOfOtherPage(assets: string): boolean {
  if (document.querySelector(`script[src="${assets}"]`) !== null) return false;
  if (sessionStorage.getItem('perf-reloaded') === assets) return false;
  sessionStorage.setItem('perf-reloaded', assets);
  return true;
}
