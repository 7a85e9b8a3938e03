/** A pull request, as it lies in the database. */
export interface Row {
  readonly id: number;
  readonly team: string;
  readonly title: string;
  readonly openedAt: string;
  readonly mergedAt: string;
  readonly reviews: readonly { by: string; at: string }[];
}

/** A row as the application works with it. */
class PullRequest {
  readonly openedAt: Date;
  readonly mergedAt: Date;
  readonly reviews: { by: string; at: Date }[];

  constructor(readonly row: Row) {
    this.openedAt = new Date(row.openedAt);
    this.mergedAt = new Date(row.mergedAt);
    this.reviews = row.reviews.map(({ by, at }) => ({ by, at: new Date(at) }));
  }

  get cycleMs(): number {
    return this.mergedAt.getTime() - this.openedAt.getTime();
  }

  get firstReviewMs(): number {
    return Math.min(...this.reviews.map(({ at }) => at.getTime())) - this.openedAt.getTime();
  }
}

export type Insights = Record<string, { count: number; medianCycleMs: number; medianFirstReviewMs: number }>;

/** Hydrates every row and compares the teams: some 200 ms of CPU for 3 MB. The default export, for `Offloader.run()`. */
export default function computeInsights(rows: readonly Row[]): Insights {
  const teams = new Map<string, PullRequest[]>();
  for (const row of rows) {
    const pull = new PullRequest(row);
    const team = teams.get(pull.row.team) ?? [];
    team.push(pull);
    teams.set(pull.row.team, team);
  }
  return Object.fromEntries(
    Array.from(teams, ([team, pulls]) => [
      team,
      {
        count: pulls.length,
        medianCycleMs: median(pulls, ({ cycleMs }) => cycleMs),
        medianFirstReviewMs: median(pulls, ({ firstReviewMs }) => firstReviewMs),
      },
    ]),
  );
}

function median(pulls: readonly PullRequest[], figure: (pull: PullRequest) => number): number {
  return figure(pulls.toSorted((a, b) => figure(a) - figure(b))[pulls.length >> 1]!);
}
