/** Words that mark a header, parameter or field as secret, wherever they stand in its name. */
const SECRET_WORDS: ReadonlySet<string> = new Set(
  (
    'auth authorization authentication bearer cookie cookies credential credentials csrf cvc cvv hmac jwt key keys mfa nonce otp ' +
    'pass passcode passphrase passwd password passwords pin pwd saml secret secrets session sessionid sid sig signature ' +
    'signed ssn ssid tan ticket token tokens totp xsrf code iban card cardnumber'
  ).split(' '),
);

/** The same without word borders: `accesstoken`, `x-apikey`, `userPasswordHash`. */
const SECRET_PARTS = [
  'apikey',
  'accesskey',
  'authoriz',
  'authentic',
  'cookie',
  'credential',
  'encryptionkey',
  'passphrase',
  'passwd',
  'password',
  'privatekey',
  'secret',
  'session',
  'signature',
  'token',
] as const;

/** Values that are secret whatever they are called: JSON web tokens, well-known key formats, PEM, HTTP credentials. */
const SECRET_VALUE =
  /eyJ[\w-]{6,}\.[\w-]{4,}|\b(?:sk|pk|rk|whsec)[_-][\w-]{12,}|\bgh[pousr]_\w{16,}|\bgithub_pat_\w{16,}|\bglpat-[\w-]{16,}|\bxox[a-z]-[\w-]{8,}|\b(?:AKIA|ASIA)[A-Z0-9]{12,}|\bAIza[\w-]{20,}|\bSG\.[\w-]{12,}|\bnpm_\w{20,}|-----BEGIN|\b(?:Bearer|Basic|Digest|Negotiate)\s+\S{4,}/i;

/** A long unbroken run of letters and digits mixed: a key, a hash or a reset token more likely than a word. */
const RANDOM_RUN = /[\w-]{32,}/g;
const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;

const plain = (name: string): string => name.toLowerCase().replace(/[^a-z0-9]/g, '');

/** Decides what must not leave the process. Deciding too often is harmless, too seldom is not. */
export class SecretNames {
  private readonly denied: ReadonlySet<string>;

  /** `denyNames` are secret beyond the built-in ones, in any case and with any separators. */
  constructor(denyNames: readonly string[]) {
    this.denied = new Set(denyNames.map(plain));
  }

  /** Whether a header, parameter or field of this name holds a secret. */
  isSecret(name: string): boolean {
    const flat = plain(name);
    if (this.denied.has(flat) || SECRET_PARTS.some((part) => flat.includes(part))) return true;
    const words = name
      .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
      .toLowerCase()
      .split(/[^a-z]+/);
    return SECRET_WORDS.has(flat) || words.some((word) => SECRET_WORDS.has(word) || this.denied.has(word));
  }

  /** Whether a value looks like a secret by itself. */
  isSecretValue(value: string): boolean {
    if (SECRET_VALUE.test(value)) return true;
    for (const [run] of value.matchAll(RANDOM_RUN)) {
      if (/\d/.test(run) && /[a-z]/i.test(run) && !UUID.test(run)) return true;
    }
    return false;
  }
}

/** What stands where a secret was. */
export const REDACTED = '[redacted]';
