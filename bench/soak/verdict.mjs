const MB = 1e6;

/** Everything that does not add up, in words; empty when all is well. */
export function disagreements({ client, server, trends }) {
  return [...growth(trends), ...requestCounts(client, server), ...records(server), ...deferredWork(client, server)];
}

/** Growth over the measured time: at most a twentieth of the level, or what a collection more or less makes. */
function growth({ heapUsed, rss, handles, files, threads }) {
  const problems = [];
  const grows = (name, { growth, level }, atMost, unit = 1) => {
    if (growth > atMost) problems.push(`${name} grew by ${(growth / unit).toFixed(1)} on ${(level / unit).toFixed(1)}`);
  };
  grows('heap (MB)', heapUsed, Math.max(heapUsed.level / 20, 2 * MB), MB);
  grows('RSS (MB)', rss, Math.max(rss.level / 20, 8 * MB), MB);
  grows('handles', handles, 1);
  grows('open files', files, 1);
  grows('threads', threads, 0);
  return problems;
}

/** What the client sent is what the server has counted, route by route and status by status. */
function requestCounts(client, server) {
  const problems = [];
  const expect = (what, is, should) => {
    if (is !== should) problems.push(`${what}: ${is} instead of ${should}`);
  };
  for (const [cause, count] of Object.entries(client.errors)) problems.push(`client error ${cause}: ${count} times`);
  for (const [name, { sent, aborted, statuses }] of Object.entries(client.counts)) {
    const row = server.routes.find(({ method, route }) => `${method} ${route}` === name);
    const sink = server.counted.requests[name];
    if (row === undefined || sink === undefined) {
      problems.push(`${name} is not in the snapshot or in no sink`);
      continue;
    }
    expect(`${name} in the snapshot`, row.count, sent);
    expect(`${name} in the counting sink`, sink.count, sent);
    expect(`${name} aborted in the counting sink`, sink.aborted, row.aborted);
    expect(`${name} in flight`, row.inFlight, 0);
    const seen = {};
    for (const [status, count] of Object.entries(statuses)) {
      const group = `${status[0]}xx`;
      seen[group] = (seen[group] ?? 0) + count;
    }
    // An answer that was given up inside its body may have left the server whole.
    if (Math.abs(row.blockedMs - sink.blockedMs) > 1) {
      problems.push(`${name}: ${row.blockedMs} ms blocked in the snapshot, ${sink.blockedMs} in the records`);
    }
    const completed = Object.values(row.statuses).reduce((sum, count) => sum + count, 0);
    expect(`${name}: statuses and aborted in the snapshot`, completed + row.aborted, row.count);
    for (const [group, count] of Object.entries(seen)) {
      if (row.statuses[group] < count)
        problems.push(`${name}: ${row.statuses[group]} of ${group}, the client saw ${count}`);
    }
    if (aborted === 0) expect(`${name} aborted`, row.aborted, 0);
    else if (row.aborted > aborted) problems.push(`${name}: ${row.aborted} aborted, the client gave up ${aborted}`);
  }
  const known = Object.keys(client.counts).length;
  expect('routes in the snapshot', server.routes.filter(({ count }) => count > 0).length, known);
  return problems;
}

/** Each sink received what was published, or said how much it has lost. Nobody innocent is blamed. */
function records({ counted, flaky, stalling, warnings }) {
  const problems = [];
  for (const [name, received] of Object.entries({ flaky, stalling })) {
    // Told at once the first time, and the rest as one number when a minute has passed or at the end.
    const said = new RegExp(`sink "${name}" lost records: (\\d+) (?:now|more)`);
    const lost = warnings.reduce((sum, line) => sum + Number(said.exec(line)?.[1] ?? 0), 0);
    if (received + lost !== counted.all) {
      problems.push(`sink ${name}: ${received} received and ${lost} reported lost of ${counted.all}`);
    }
  }
  if (counted.blamed['/block'] === undefined) problems.push('not one block was attributed');
  const innocent = Object.keys(counted.blamed).filter((route) => route !== '/block' && route !== 'nobody');
  if (innocent.length > 0) problems.push(`blamed for blocks: ${innocent.join()}`);
  return problems;
}

/** What was accepted ran, and the counters balance. */
function deferredWork(client, { defer, missing, audits, thrown, counted }) {
  const problems = [];
  const { accepted, completed, failed, dropped, pending, running } = defer;
  if (accepted !== completed + failed + dropped + pending + running) problems.push(`defer: ${JSON.stringify(defer)}`);
  if (pending + running + defer.buffered > 0) problems.push(`left over: ${JSON.stringify(defer)}`);
  if (missing > 0) problems.push(`durable work of ${missing} of ${client.accepted.length} orders has not run`);
  const answered = client.counts['GET /users/:id'].statuses[200] ?? 0;
  if (audits !== answered) problems.push(`${audits} audits for ${answered} answers`);
  if (failed !== thrown) problems.push(`${thrown} tasks threw, ${failed} were counted as failed`);
  const stored = client.accepted.length;
  if (defer.stored !== stored) problems.push(`${defer.stored} durable jobs stored for ${stored} accepted orders`);
  if (accepted !== answered + thrown + stored)
    problems.push(`${accepted} accepted, expected ${answered + thrown + stored}`);
  if ((counted.deferred['failed'] ?? 0) !== failed)
    problems.push(`${counted.deferred['failed']} failures recorded of ${failed}`);
  return problems;
}
