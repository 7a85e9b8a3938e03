/** The megabyte of Node and of containers, bytes. */
export const MIB = 2 ** 20;
export const mb = (bytes: number): number => Math.round(bytes / MIB);

/** `1 error`, `2 errors` */
export const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`;

export const percent = (share: number): string => `${(share * 100).toFixed(0)} %`;

/** Share of throttled CPU periods that deserves a word. */
export const THROTTLED = 0.05;
/** Share that deserves a louder word. */
export const BADLY_THROTTLED = 0.25;
