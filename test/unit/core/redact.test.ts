import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { redactUrl } from '../../../src/core/redact-url.js';
import { SecretNames } from '../../../src/core/secret-names.js';

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
      'securitycode authcode sshkey oauth_verifier sess oldpw newpw security_answer securityAnswer appkey licensekey clientkey ' +
      'subscriptionkey smscode userpin newpin creds cred psw pswd dbpswd magiclink resetlink invite pan ccnum csc cvn ' +
      'accountNumber taxId customerTaxId passport kennwort senha novaSenha contraseña Contraseña heslo şifre пароль 密码 ' +
      'パスワード ｐａｓｓｗｏｒｄ a[ｐｉｎ]'
    ).split(' '),
  )('%s is secret', (name) => {
    expect(secrets.isSecret(name)).toBe(true);
  });

  it.each(
    (
      'page limit keyboard bypass encompass boardingpass trespass author monkey user id accept content-type ' +
      'pinned passage a[ref] taxidermy company panel span invited accounts discredit incredible country region numéro straße ' +
      '名前 ｎａｍｅ newsletter opinion spinner'
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
    '4111.1111.1111.1111',
    '4111\u00a01111\u00a01111\u00a01111',
    '4111  1111  1111  1111',
    'visa4111111111111111',
    'card_4111111111111111x',
    '4222222222222',
    '6212345678901234569',
    // nanoid, base62, hex, base36.
    'V1StGXR8_Z5jdHi6B-myT',
    'resetting with 7vRze4b7Cq4se7kKWsZnCjm1 today',
    'b3f1a27c90d4e5886a1b2c3d',
    'k3j9x0q2m7v5b1n8z4c6t0w2',
    'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEX4MPLE+EY',
    // Tokens of Telegram and Discord.
    '110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw',
    'MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs',
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
    '52.52000660000010',
    '13.404954 52.520008',
    '2024-01-15T10:20:30.000Z',
    // Ids that begin with a time, and the end of a UUID.
    '507f1f77bcf86cd799439011',
    '01HV3Q7Z8XJ4K5M6N7P8Q9R0ST',
    '123e4567-e89b-12d3-a456-411111111111',
    // Words with numbers in them.
    'order-2024-01-15-summary',
    'iphone-14-pro-max-256gb-blue',
    'report_2024Q1_v2_final3a',
    'mp4-1080p-h264-60fps-hdr10',
    'covid19-vaccine-mrna1273-x',
    'getUserByIdAndNameOfOrder1',
    'HTTP2ServerPushPromiseFrame2',
    '/Users/ada/Documents/Projects2024/Report1/final',
    'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
    'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36',
  ])('not %s', (value) => {
    expect(secrets.isSecretValue(value)).toBe(false);
  });
});

describe('random texts', () => {
  /** Repeats itself, so that the share is the same at each run. */
  const shareFound = (alphabet: string, length: number): number => {
    let seed = 42;
    const next = (): number => (seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0) / 2 ** 32;
    const one = (): string => Array.from({ length }, () => alphabet[Math.floor(next() * alphabet.length)]).join('');
    return Array.from({ length: 2_000 }, one).filter((text) => secrets.isSecretValue(text)).length / 2_000;
  };
  const lower = 'abcdefghijklmnopqrstuvwxyz';
  const base62 = `${lower}${lower.toUpperCase()}0123456789`;

  it.each([
    ['nanoid', `${base62}_-`, 21, 0.85],
    ['base62', base62, 24, 0.9],
    ['hex', '0123456789abcdef', 24, 0.8],
    ['hex', '0123456789abcdef', 40, 0.99],
    ['base36', `${lower}0123456789`, 24, 0.85],
    ['base64', `${base62}+/`, 40, 0.9],
  ])('of %s are found, most of them', (_kind, alphabet, length, share) => {
    expect(shareFound(alphabet, length)).toBeGreaterThan(share);
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
    ['/x?a=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEX4MPLE+EY', '/x', '/x?a=[redacted]'],
    ['/files/7vRze4b7Cq4se7kKWsZnCjm1', '/files/:name', '/files/[redacted]'],
    ['/users/507f1f77bcf86cd799439011', '/users/:id', '/users/507f1f77bcf86cd799439011'],
    ['/x?%E5%AF%86%E7%A0%81=hunter2', '/x', '/x?%E5%AF%86%E7%A0%81=[redacted]'],
    ['*', null, '*'],
  ])('%s', (url, pattern, expected) => {
    expect(redactUrl(url, { pattern }, secrets)).toBe(expected);
  });

  describe('of a path that was routed as another one', () => {
    it.each<[url: string, pattern: string, expected: string]>([
      ['/en/reset/Ab3xY9', '/reset/:token', '/[redacted]/reset/[redacted]'],
      ['//reset//Ab3xY9/', '/reset/:token', '//reset//[redacted]/'],
      ['/reset/a%2Fb', '/reset/:token', '/reset/[redacted]'],
      ['/RESET/AB3XY9', '/reset/:token', '/RESET/[redacted]'],
      ['/reset/Ab3xY9;v=1', '/reset/:token', '/reset/[redacted]'],
      ['/en/p7-Ab3xY9', '/p:page-:token', '/[redacted]/[redacted]'],
      ['/w/a1/b2/c3', '/w/*token', '/w/[redacted]/[redacted]/[redacted]'],
      ['/other/hunter2', '/reset/:token', '/[redacted]/[redacted]'],
      ['/verify', '/verify{/:token}', '/verify'],
      ['/en/users/7', '/users/:id', '/en/users/7'],
    ])('%s as %s', (url, pattern, expected) => {
      expect(redactUrl(url, { pattern }, secrets)).toBe(expected);
    });
  });

  // A route with a secret in its path may have been mistyped.
  it.each([
    ['/reset/Ab3xY9/', null, '/reset/[redacted]/'],
    ['/RESET/Ab3xY9', '', '/[redacted]/[redacted]'],
    ['/reset//Ab3xY9', '', '/reset//[redacted]'],
    ['/reset%2FAb3xY9', '', '/[redacted]'],
    ['/%72eset/Ab3xY9/more', '', '/[redacted]/[redacted]/more'],
    ['/api/v1/invite/Ab3xY9', '', '/api/v1/invite/[redacted]'],
    ['/reset/Ab3xY9/', '/*path', '/reset/[redacted]/'],
    ['/reset/Ab3xY9/', '/{*path}', '/reset/[redacted]/'],
    ['/Ab3xY9/', null, '/[redacted]/'],
    ['/users/7/', '', '/users/[redacted]/'],
    ['/favicon.ico?v=2', '', '/favicon.ico?v=2'],
    ['/', '', '/'],
    ['/reset/help', '/reset/help', '/reset/help'],
  ])('has words alone in its path where no route matches: %s as %s', (url, pattern, expected) => {
    expect(redactUrl(url, { pattern }, secrets)).toBe(expected);
  });

  it.each(['/files/:name', '/files/*name', '/files/{*name}', '/files/*'])(
    'the parameter of %s is hidden where a rule of its own says so',
    (pattern) => {
      expect(redactUrl('/files/jane', { pattern, hides: () => true }, secrets)).toBe('/files/[redacted]');
      expect(redactUrl('/files/jane', { pattern }, secrets)).toBe('/files/jane');
    },
  );

  it('is never longer than a line', () => {
    expect(redactUrl(`/x?a=${'b '.repeat(5_000)}`, { pattern: '/x' }, secrets).length).toBeLessThan(2_100);
  });

  it('reads no part of a parameter or segment that is too long to be read as a whole', () => {
    expect(redactUrl(`/x?a=1&b=${'b'.repeat(5_000)}`, { pattern: '/x' }, secrets)).toBe('/x?a=1&…');
    expect(redactUrl(`/x/${'b'.repeat(5_000)}?a=1`, { pattern: '/x/:b' }, secrets)).toBe('/x/…');
  });

  it('never passes on the value of a secret parameter, whatever surrounds it', () => {
    // fast-check's own query parameters take seconds to set up.
    const text = fc.string({ unit: 'binary-ascii' }).map(encodeURIComponent);
    const parameter = fc.tuple(text, text).map((parts) => parts.join('='));
    fc.assert(
      fc.property(fc.array(parameter, { maxLength: 4 }), fc.nat(4), (others, at) => {
        const parameters = [...others];
        parameters.splice(at, 0, 'api_key=hunter2hunter2');
        expect(redactUrl(`/x?${parameters.join('&')}`, { pattern: '/x' }, secrets)).not.toContain('hunter2');
      }),
    );
  });
});
