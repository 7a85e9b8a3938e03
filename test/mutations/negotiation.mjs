const file = 'src/compression/rules/accept-encoding.ts';
const tests = ['test/unit/compression/rules/accept-encoding.test.ts'];
const policy = 'src/compression/rules/policy.ts';
const policyTests = ['test/unit/compression/rules/policy.test.ts'];

export const negotiation = [
  {
    name: 'of two members with one name the higher weight counts',
    file,
    find: 'Math.min(weight, weights.get(canonical) ?? 1)',
    replace: 'Math.max(weight, weights.get(canonical) ?? 0)',
    tests,
  },
  { name: 'a malformed weight counts as 1', file, find: 'Number(value) : null;', replace: 'Number(value) : 1;', tests },
  {
    name: 'x-gzip is a coding of its own',
    file,
    find: "coding === 'x-gzip' ? 'gzip' : coding",
    replace: 'coding',
    tests,
  },
  {
    name: 'names are compared with their case',
    file,
    find: 'name.trim().toLowerCase()',
    replace: 'name.trim()',
    tests,
  },
  {
    name: 'no header means anything',
    file,
    find: 'if (header === undefined) return null;\n  const weights',
    replace: "if (header === undefined) header = '*';\n  const weights",
    tests,
  },
  {
    name: 'identity is never preferred',
    file,
    find: 'let bestWeight = identity ?? 0;',
    replace: 'let bestWeight = 0;',
    tests,
  },
  { name: '`*;q=0` means anything', file, find: ' || any === 0', replace: '', tests },
  {
    name: '`*` also means what was refused by name',
    file,
    find: ' && !weights.has(coding)',
    replace: '',
    tests,
  },
  {
    name: '`*` is sent the best coding instead of the safest',
    file,
    find: "['gzip', 'br', 'deflate', 'zstd']",
    replace: "['zstd', 'br', 'gzip', 'deflate']",
    tests,
  },
  {
    name: 'the client’s first coding wins over the server’s order',
    file,
    find: 'if (weight > bestWeight || (best === null',
    replace: 'if (weight >= bestWeight || (best === null',
    tests,
  },
  { name: 'a part is encoded', file: policy, find: ' || status === 206', replace: '', tests: policyTests },
  {
    name: '`no-transform` is transformed',
    file: policy,
    find: " || hasMember(head.header('cache-control'), 'no-transform')",
    replace: '',
    tests: policyTests,
  },
  {
    name: 'what is encoded already is encoded again',
    file: policy,
    find: '!isEncoded(head) && ',
    replace: '',
    tests: policyTests,
  },
  {
    name: 'an answer that sets a cookie is kept for others',
    file: policy,
    find: "head.header('set-cookie') !== undefined || ",
    replace: '',
    tests: policyTests,
  },
];
