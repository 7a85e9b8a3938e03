export type AttachableKind = 'application' | 'request' | 'route';

/** Something that features keep what they know of. */
export abstract class Attachable {
  /** By {@link Attachment}; null until somebody keeps something. */
  attached: unknown[] | null = null;
}

/** Where one feature keeps what it knows. Nobody else can read it. */
export interface Attachment<T> {
  /** Null when nothing is kept. A plain read: safe inside the event loop's interrupt. */
  get(of: Attachable): T | null;
  set(of: Attachable, value: T | null): void;
}

/** What a thing keeps at first: as long as it will ever be, since a list that grows takes several times the room. */
const nothing: Readonly<Record<AttachableKind, null[]>> = { application: [], request: [], route: [] };

/** Makes a key for one kind of things. Call it once, where the feature declares what it keeps. */
export function attach<T>(kind: AttachableKind): Attachment<T> {
  const index = nothing[kind].push(null) - 1;
  return {
    get: ({ attached }) => (attached === null ? null : ((attached[index] as T | null | undefined) ?? null)),
    set: (of, value) => {
      (of.attached ??= nothing[kind].slice())[index] = value;
    },
  };
}
