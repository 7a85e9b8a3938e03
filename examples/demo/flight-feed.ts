export interface Flight {
  callsign: string;
  latitude: number;
  longitude: number;
  altitudeFeet: number;
  groundSpeedKnots: number;
  headingDegrees: number;
  route: string;
}

const FLIGHTS = 6_000;

/** A deterministic feed of about 1 MB: the same for every visitor until the next update. */
export function flightFeed(): { updatedAt: string; flights: readonly Flight[] } {
  return feed;
}

const feed = {
  updatedAt: '2026-11-20T12:00:00.000Z',
  flights: Array.from({ length: FLIGHTS }, (_, i): Flight => {
    const turn = (i * 7919) % 36_000;
    return {
      callsign: `NPF${1000 + i}`,
      latitude: Number((90 * Math.sin(turn)).toFixed(5)),
      longitude: Number((180 * Math.cos(turn * 1.3)).toFixed(5)),
      altitudeFeet: 1_000 + ((i * 37) % 40_000),
      groundSpeedKnots: 120 + ((i * 13) % 400),
      headingDegrees: turn / 100,
      route: `${String.fromCharCode(65 + (i % 26))}DEP DCT ${String.fromCharCode(65 + ((i * 3) % 26))}ARR`,
    };
  }),
};
