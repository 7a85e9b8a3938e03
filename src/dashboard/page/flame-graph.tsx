import { useEffect, useRef, useState } from 'preact/hooks';
import { counted, formatDuration, formatPercent } from '../format.js';
import { readFlame, type CpuProfile, type Flame, type FunctionName } from './flame.js';

interface FlameGraphProps {
  /** The profile's label: `'GET /users/:id'`, or `'background'`. */
  readonly label: string;
  /** A function of the application, from which on stacks are shown; null: all. */
  readonly from?: FunctionName | null;
}

type Loaded = { readonly flame: Flame | null; readonly samples: number } | string;

/** Stacks of the event loop, the caller above what it calls: as wide as the time that a function took. */
export function FlameGraph({ label, from = null }: FlameGraphProps) {
  const [loaded, setLoaded] = useState<Loaded | null>(null);
  const [chosen, setChosen] = useState<Flame | null>(null);
  const query = new URLSearchParams({ route: label }).toString();
  const load = async (): Promise<void> => {
    setChosen(null);
    try {
      const response = await fetch(`profile?${query}`, { cache: 'no-store' });
      if (!response.ok) return setLoaded(await response.text());
      const profile = (await response.json()) as CpuProfile;
      setLoaded({ flame: readFlame(profile, from), samples: Math.max(0, profile.samples.length - 1) });
    } catch {
      setLoaded('The application does not answer.');
    }
  };
  useEffect(() => void load(), [label, from?.name, from?.file]);
  const list = useRef<HTMLUListElement>(null);
  // The chosen button is another element now: keys go on from there.
  useEffect(() => (chosen === null ? undefined : list.current?.querySelector('button')?.focus()), [chosen]);
  if (loaded === null) return <p class="empty">Reading stacks…</p>;
  if (typeof loaded === 'string') return <p class="empty">{loaded}</p>;
  const { flame, samples } = loaded;
  if (flame === null)
    return <p class="empty">No stack of it in the last 5 to 10 minutes: they are sampled 20 times a second.</p>;
  const shown = chosen ?? flame;
  return (
    <figure class="flame">
      <figcaption class="row dim">
        Where it spends its CPU time: {formatDuration(flame.ms)} of the last 5 to 10 minutes,{' '}
        {counted(samples, 'sample')}
        <button type="button" onClick={() => void load()}>
          Read again
        </button>
        {chosen !== null && (
          <button type="button" onClick={() => setChosen(null)}>
            Show all
          </button>
        )}
        <a href={`profile?${query}`} download="slow.cpuprofile">
          .cpuprofile
        </a>
      </figcaption>
      <ul ref={list} aria-label={`Flame graph of ${label}: arrow keys move`} onKeyDown={moveFocus}>
        <Frame flame={shown} share={1} wholeMs={shown.ms} isFirst onChoose={setChosen} />
      </ul>
    </figure>
  );
}

/** Narrower calls are no more than a line. */
const LEAST_SHARE = 0.004;

interface FrameProps {
  readonly flame: Flame;
  readonly share: number;
  readonly wholeMs: number;
  readonly isFirst?: boolean;
  readonly onChoose: (flame: Flame) => void;
}

function Frame({ flame, share, wholeMs, isFirst = false, onChoose }: FrameProps) {
  const { name, place, ms, kind, calls } = flame;
  const shown = calls.filter((call) => call.ms >= LEAST_SHARE * wholeMs);
  const text = `${name}, ${formatDuration(ms)}, ${formatPercent(ms / wholeMs)}${place === null ? '' : `, ${place}`}`;
  return (
    <li style={{ width: `${share * 100}%` }}>
      <button
        type="button"
        class={kind}
        tabIndex={isFirst ? 0 : -1}
        title={text}
        aria-label={text}
        onClick={() => onChoose(flame)}
      >
        {name}
      </button>
      {shown.length > 0 && (
        <ul>
          {shown.map((call) => (
            <Frame key={call.key} flame={call} share={call.ms / ms} wholeMs={wholeMs} onChoose={onChoose} />
          ))}
        </ul>
      )}
    </li>
  );
}

/** Arrows move: up to the caller, down to the longest call, left and right among the calls of one caller. */
function moveFocus(event: KeyboardEvent): void {
  const item = (event.target as HTMLElement).closest('li');
  const targets: Record<string, Element | null | undefined> = {
    ArrowUp: item?.parentElement?.closest('li'),
    ArrowDown: item?.querySelector('li'),
    ArrowLeft: item?.previousElementSibling,
    ArrowRight: item?.nextElementSibling,
  };
  if (!(event.key in targets)) return;
  targets[event.key]?.querySelector('button')?.focus();
  event.preventDefault();
}
