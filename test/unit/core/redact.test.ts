import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { redactUrl, SecretNames } from '../../../src/core/redact.js';

const secrets = new SecretNames(['x-tenant', 'IBAN2', 'inviteRef']);
const jwt = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln';

describe('secret names', () => {
  it.each(
    (
      'authorization Cookie set-cookie x-api-key apiKey API_KEY access_token accessToken refreshtoken ' +
      'user[password] newPasswordConfirmation client_secret X-CSRF-Token proxy-authorization sessionId sid ' +
      'x-amz-signature pin cvv otp private_key X-Tenant x_tenant iban2 a[inviteRef] a[invite_ref][] a.inviteRef ' +
      '/a/inviteRef :page-:inviteRef a[iban2] OTPCode userJWTValue CVVNumber PHPSESSID userpwd userpass DBPASS2 ' +
      'smtppass ldappass derbypass confirmpass postgrespass Passwort backupCodes jwts pins creditcardnumber ' +
      'securitycode authcode sshkey oauth_verifier sess'
    ).split(' '),
  )('%s is secret', (name) => {
    expect(secrets.isSecret(name)).toBe(true);
  });

  it.each(
    (
      'page limit keyboard bypass encompass boardingpass trespass author monkey user id accept content-type ' +
      'pinned passage a[ref]'
    ).split(' '),
  )('%s is not', (name) => {
    expect(secrets.isSecret(name)).toBe(false);
  });
});

describe('secret values', () => {
  it.each([
    jwt,
    `Bearer ${jwt}`,
    'Basic dXNlcjpwYXNz',
    'sk_live_abcdefghijklmnop',
    'ghp_abcdefghijklmnopqrstuvwxyz0123456789',
    'AKIAIOSFODNN7EXAMPLE',
    'xoxb-123456789-abc',
    '-----BEGIN PRIVATE KEY-----',
    '4f5b2c9d8e7f6a5b4c3d2e1f0a9b8c7d',
    '4111 1111 1111 1111',
    'paid with 5500-0000-0000-0004 today',
    '340000000000009',
  ])('%s', (value) => {
    expect(secrets.isSecretValue(value)).toBe(true);
  });

  it.each([
    '42',
    'hello world',
    'text/html,application/xhtml+xml',
    '123e4567-e89b-12d3-a456-426614174000',
    'a-rather-long-name-of-a-blog-post-without-digits',
    // No card's: the check digit is wrong, a time in microseconds, part of a longer one.
    '4111 1111 1111 1112',
    '1700000000000009',
    '41111111111111110000',
  ])('not %s', (value) => {
    expect(secrets.isSecretValue(value)).toBe(false);
  });
});

describe('URL', () => {
  it.each([
    ['/users/42?page=2&sort=-name', '/users/:id', '/users/42?page=2&sort=-name'],
    ['/users?token=abc&page=2', '/users', '/users?token=[redacted]&page=2'],
    ['/users?user%5Bpassword%5D=hunter2', '/users', '/users?user%5Bpassword%5D=[redacted]'],
    ['/reset/hunter2', '/reset/:token', '/reset/[redacted]'],
    ['/reset/hunter2/x', '/reset/:resetToken/:page', '/reset/[redacted]/x'],
    [`/verify/${jwt}`, '/verify/:what', '/verify/[redacted]'],
    ['/report;jsessionid=abc', '/report', '/[redacted]'],
    [`/x?next=${encodeURIComponent(`/y?token=abc`)}`, '/x', '/x?next=[redacted]'],
    ['/x?next=https%253A%252F%252Fh%252Fy%253Ftoken%253Dabc', '/x', '/x?next=[redacted]'],
    ['/x?a=%2525252525', '/x', '/x?a=%2525252525'],
    ['/x?pw=hunter2', '/x', '/x?pw=[redacted]'],
    [`/x?db=${encodeURIComponent('postgres://me:pw@host/db')}`, '/x', '/x?db=[redacted]'],
    [`/x?filter=${encodeURIComponent('{"password":"p","a":1}')}`, '/x', '/x?filter=[redacted]'],
    [`/x?filter=${encodeURIComponent('{"a":1}')}`, '/x', `/x?filter=${encodeURIComponent('{"a":1}')}`],
    ['/x?sk_live_abcdefghijklmnop', '/x', '/x?[redacted]'],
    ['/x?%E0%A4%A=1', '/x', '/x?[redacted]'],
    ['/x?a=%E0%A4%A', '/x', '/x?a=[redacted]'],
    ['http://me:pw@host/x?a=1', '/x', '/x?a=1'],
    ['http://host?a=1', '/', '/?a=1'],
    ['http://host', '/', '/'],
    ['/x#token', '/x', '/x'],
    [`/x?${encodeURIComponent('{"password":"hunter2"}')}`, '/x', '/x?[redacted]'],
    ['/x?{"password":"x=hunter2"}', '/x', '/x?[redacted]'],
    ['/x?https://me:hunter2@host/', '/x', '/x?[redacted]'],
    ['/x?token:hunter2', '/x', '/x?[redacted]'],
    ['/fetch/https://me:hunter2@host/a', '/fetch/*', '/fetch/https://[redacted]/a'],
    ['/x?log=payload={"password":"hunter2"}', '/x', '/x?log=[redacted]'],
    [`/x?log=${encodeURIComponent(JSON.stringify('{"password":"hunter2"}'))}`, '/x', '/x?log=[redacted]'],
    ['/x?xml=<login><soap:password type="text">hunter2</soap:password></login>', '/x', '/x?xml=[redacted]'],
    [`/x?a=${'%25'.repeat(6)}3Dtoken%3Dhunter2`, '/x', '/x?a=[redacted]'],
    ['/files/a/hunter2', '/files{/:folder}/a/:token', '/files/a/[redacted]'],
    ['/any/where/hunter2/end', '/*path/:token/end', '/[redacted]/[redacted]/[redacted]/end'],
    ['/verify/hunter2', '/verify/:token?', '/verify/[redacted]'],
    ['/w/hunter2', '/w/*token', '/w/[redacted]'],
    ['/w/a/hunter2', '/w{/*inviteRef}', '/w/[redacted]/[redacted]'],
    ['/w/a/b', '/w/*path', '/w/a/b'],
    ['/x?a[inviteRef]=hunter2&b[ref]=1', '/x', '/x?a[inviteRef]=[redacted]&b[ref]=1'],
    ['/files/a/b', '/files{/:folder}/:page', '/files/a/b'],
    ['*', null, '*'],
  ])('%s', (url, pattern, expected) => {
    expect(redactUrl(url, pattern, secrets)).toBe(expected);
  });

  it('is never longer than a line', () => {
    expect(redactUrl(`/x?a=${'b '.repeat(5_000)}`, '/x', secrets).length).toBeLessThan(2_100);
  });

  it('reads no part of a parameter or segment that is too long to be read as a whole', () => {
    expect(redactUrl(`/x?a=1&b=${'b'.repeat(5_000)}`, '/x', secrets)).toBe('/x?a=1&…');
    expect(redactUrl(`/x/${'b'.repeat(5_000)}?a=1`, '/x/:b', secrets)).toBe('/x/…');
  });

  /** JSON texts in JSON texts, the innermost encoded over and over. */
  const nested = (levels: number): string => {
    let text = `%${'25'.repeat(60)}41`;
    for (let level = 0; level < levels; level++) text = JSON.stringify([text]);
    return text;
  };

  it.each([
    ['JSON in JSON, and encodings of encodings', `/x?q=${nested(9)}`],
    ['beginnings of tokens', `/x?q=${'eyJ'.repeat(5_000)}`],
    ['colons', `/x?q=${':'.repeat(16_000)}`],
    ['names', `/x?q=${'a='.repeat(8_000)}`],
    ['parameters', `/x?${'a=1&'.repeat(4_000)}`],
    ['segments', '/a'.repeat(8_000)],
  ])('is soon done, whatever a client sends: %s', (_what, url) => {
    redactUrl(url, '/x', secrets);
    const startedMs = performance.now();
    for (let i = 0; i < 10; i++) redactUrl(url, '/x', secrets);
    expect((performance.now() - startedMs) / 10).toBeLessThan(20);
  });

  it('never passes on the value of a secret parameter, whatever surrounds it', () => {
    // fast-check's own query parameters take seconds to set up.
    const text = fc.string({ unit: 'binary-ascii' }).map(encodeURIComponent);
    const parameter = fc.tuple(text, text).map((parts) => parts.join('='));
    fc.assert(
      fc.property(fc.array(parameter, { maxLength: 4 }), fc.nat(4), (others, at) => {
        const parameters = [...others];
        parameters.splice(at, 0, 'api_key=hunter2hunter2');
        expect(redactUrl(`/x?${parameters.join('&')}`, '/x', secrets)).not.toContain('hunter2');
      }),
    );
  });

  it('reads a long value once, however long it is', () => {
    const costOf = (length: number): number => {
      const url = `/search?q=${'x y '.repeat(length / 8)}${'x'.repeat(length / 2)}`;
      const startedMs = performance.now();
      for (let i = 0; i < 5; i++) redactUrl(url, null, secrets);
      return performance.now() - startedMs;
    };
    costOf(1_000);
    // Each step may go back to the beginning: then it is a thousand times as much.
    expect(costOf(64_000)).toBeLessThan(300 * Math.max(costOf(2_000), 0.05));
  });
});
