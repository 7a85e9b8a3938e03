// The reference body: a flight tracker's feed, deterministic, of about as many bytes of JSON as asked for.

const AIRPORTS = ['EDDF', 'LIRF', 'KJFK', 'EGLL', 'LFPG', 'OMDB', 'RJTT', 'YSSY', 'SBGR', 'FACT'];
/** Bytes of one flight, on average. */
const FLIGHT_BYTES = 292;

/** Another `version` moves every flight a little, as the next poll of a live feed does. */
export function flights(bytes, version = 0) {
  const count = Math.max(1, Math.round(bytes / FLIGHT_BYTES));
  return { version, pilots: Array.from({ length: count }, (_, id) => flight(id, version)) };
}

function flight(id, version) {
  const random = (salt) => (Math.imul(id + 1, 2654435761) ^ Math.imul(salt + 7, 40503 + version * 97)) >>> 0;
  const [departure, arrival] = [AIRPORTS[random(1) % 10], AIRPORTS[random(2) % 10]];
  return {
    id: 100_000 + id,
    userId: 200_000 + (random(3) % 90_000),
    callsign: `${['DLH', 'AFR', 'BAW', 'UAE'][random(4) % 4]}${100 + (random(5) % 900)}`,
    flightPlan: {
      departure,
      arrival,
      aircraft: ['B738', 'A320', 'A359', 'B77W'][random(6) % 4],
      level: `F${300 + (random(7) % 11) * 10}`,
    },
    track: {
      latitude: (random(8) % 180_000) / 1_000 - 90,
      longitude: (random(9) % 360_000) / 1_000 - 180,
      altitude: random(10) % 41_000,
      groundSpeed: random(11) % 520,
      heading: random(12) % 360,
      onGround: random(13) % 5 === 0,
      state: ['En Route', 'Approach', 'Boarding', 'Departing'][random(14) % 4],
    },
  };
}
