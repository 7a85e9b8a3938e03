export const REDACTED = '[redacted]';

/** Words that mark a header, parameter or field as secret, anywhere in its name, in the plural too. */
const SECRET_WORDS: ReadonlySet<string> = new Set(
  (
    'auth bearer csrf cvc cvv hmac jwt key mfa mnemonic nonce otp pass passcode pin pw saml sess sid sig signed ssn ssid tan ' +
    'ticket totp xsrf code iban card cardnumber cred creds csc cvn invite pan psw pswd haslo heslo senha sifre'
  ).split(' '),
);

/** Parts that mark a name without word borders: `accesstoken`, `x-apikey`, `userPasswordHash`. */
const SECRET_PARTS = (
  'accesscode accesskey accountnumber activationcode apikey appkey authcode authentic authkey authoriz backupcode ccnum ' +
  'clientkey confirmationcode cookie creditcard credential encryptionkey invitecode invitelink licencekey licensekey logincode ' +
  'loginlink magiclink masterkey newpin oldpin otpcode passphrase passport passw pincode privatekey pwd recoverycode resetcode ' +
  'resetlink secret securityanswer securitycode seedphrase servicekey sessid session sharedkey signature signingkey smscode ' +
  'sshkey subscriptionkey token twofa twofactor userpin verificationcode verifier 2fa ' +
  'contrasena kennwort losenord motdepasse wachtwoord пароль 密码 密碼 パスワード 비밀번호'
).split(' ');

/** `userpass`, `ldappass`, `oldpw`, `customertaxid`; neither `bypass` nor `boardingpass`. */
const SECRET_END =
  /^(?!(?:by|com|encom|over|sur|tres|under|boarding|season|ski|high|low|band)pass$).*(?:pass|pw|psw|pswd|taxid)$/;

/** Values that are secret whatever they are called: JSON web tokens, well-known key formats, PEM, HTTP credentials. */
const KEY =
  /(?<![\w-])eyJ[\w-]{6,}\.[\w.-]{4,}|\b(?:sk|pk|rk|whsec)[_-][\w-]{12,}|\bgh[pousr]_\w{16,}|\bgithub_pat_\w{16,}|\bglpat-[\w-]{16,}|\bxox[a-z]-[\w-]{8,}|\b(?:AKIA|ASIA)[A-Z0-9]{12,}|\bAIza[\w-]{20,}|\bSG\.[\w-]{12,}|\bnpm_\w{20,}/;
const SECRET_VALUE = new RegExp(`${KEY.source}|-----BEGIN|\\b(?:Bearer|Basic|Digest|Negotiate)\\s+\\S{4,}`, 'i');

/** Candidates for a payment card's number (ISO/IEC 7812): 14 to 16 digits, 13 and 19 of issuers that have such. Words may precede it: `visa4111…`. */
const MAYBE_CARDS: readonly RegExp[] = [
  /(?<!\d)(?<!\d[.-])(?:2[2-7]|3\d|4\d|5\d|6\d)(?:[ \u00a0-]{0,2}\d){12,14}(?!\d)(?!\.\d)/g,
  /(?<![\d.])(?:4\d{12}|(?:4\d|50|6[237])\d{17})(?![\d.])/g,
  /(?<![\d.])[2-6]\d{3}(?:\.\d{4}){3}(?![\d.])/g,
];
/** Shorter texts contain no card's number, and no run. */
const LEAST_LENGTH = 13;
/** Numbers below are no card's. */
export const LEAST_CARD = 4e12;

/** A long unbroken run of letters and digits mixed: a key, a hash or a reset token more likely than a word. */
const RANDOM_RUN = /[\w-]{20,}/g;
/** A run in base64, whose `/` and `+` other texts have as well. */
const BASE64_RUN = /[A-Za-z0-9+/]{40,}/g;
/** Beyond this length digits among letters are enough. */
const LONG_RUN = 32;

const UUIDS = /[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}/gi;
/** Ids that begin with the time at which they were made. `01…`: until the year 2039. */
const ULID = /^01[0-9A-HJKMNP-TV-Z]{24}$/;
const OBJECT_ID = /^[0-9a-f]{24}$/i;
const FIRST_OBJECT_ID_SECONDS = Date.UTC(2009, 0) / 1_000;

/** `https://user:password@host`, and the same without its scheme, as a path's segment is. */
const WITH_CREDENTIALS = /:\/\/[^/\s]*@|:[^\s/:]*@/;

const KEYS = new RegExp(KEY.source, 'gi');
const CREDENTIALS_IN_URL = /:\/\/[^/\s@]*:[^/\s@]*@/g;
/** With something in it that no word has: "Basic authentication" is none. */
const HTTP_CREDENTIALS = /\b(Bearer|Basic|Digest|Negotiate)\s+(?=\S*[\d=.])\S{8,}/gi;

/** Removes keys and credentials from a sentence, as errors have it. */
export const withoutSecrets = (sentence: string): string =>
  sentence
    .replaceAll(CREDENTIALS_IN_URL, `://${REDACTED}@`)
    .replaceAll(HTTP_CREDENTIALS, `$1 ${REDACTED}`)
    .replaceAll(KEYS, REDACTED);

/** The check digit of a card's number, by Luhn's formula (ISO/IEC 7812-1, annex B). */
function isCard(text: string): boolean {
  const digits = text.replace(/\D/g, '');
  let sum = 0;
  for (let i = 0; i < digits.length; i++) {
    const digit = Number(digits[digits.length - 1 - i]);
    const doubled = i % 2 === 0 ? digit : 2 * digit;
    sum += doubled > 9 ? doubled - 9 : doubled;
  }
  return sum % 10 === 0;
}

/** Letters and digits in their plainest form: without accents, and narrow where they were full-width. */
const plain = (name: string): string =>
  folded(name)
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]/gu, '');

const folded = (name: string): string =>
  // oxlint-disable-next-line no-control-regex
  /^[\x00-\x7f]*$/.test(name)
    ? name
    : name
        .normalize('NFKD')
        .replace(/[\u0300-\u036f]/g, '')
        .normalize('NFC');

/** A time of the last decades, as MongoDB puts it first. */
const isObjectId = (run: string): boolean => {
  if (!OBJECT_ID.test(run)) return false;
  const seconds = parseInt(run.slice(0, 8), 16);
  return seconds >= FIRST_OBJECT_ID_SECONDS && seconds <= Date.now() / 1_000 + 86_400;
};

/** Whether letters, digits and cases alternate as in a key: at every third character or oftener, unlike `iphone-14-pro-256gb`, `getUserById2`. */
function alternates(run: string): boolean {
  const mixed = run.match(/(?<=[a-z])\d|(?<=\d)[a-z]/gi)?.length ?? 0;
  const humps = run.match(/(?<=[a-z])[A-Z]/g)?.length ?? 0;
  return mixed >= 2 && mixed + humps >= run.length / 4;
}

const isMixed = (run: string): boolean => /\d/.test(run) && /[a-z]/i.test(run);

function isRandom(run: string): boolean {
  if (!isMixed(run) || ULID.test(run) || isObjectId(run)) return false;
  return run.length >= LONG_RUN || alternates(run);
}

/** Decides what must not leave the process. Deciding too often is harmless, too seldom is not. */
export class SecretNames {
  private readonly denied: ReadonlySet<string>;

  /** `denyNames` are secret beyond the built-in ones, in any case and with any separators. */
  constructor(denyNames: readonly string[]) {
    this.denied = new Set(denyNames.map(plain));
  }

  /** Whether a header, parameter or field of this name is secret. */
  isSecret(name: string): boolean {
    const flat = plain(name);
    if (this.denied.has(flat) || SECRET_PARTS.some((part) => flat.includes(part))) return true;
    // `a[inviteRef]`, `a.inviteRef`, `/a/inviteRef`
    if (this.denied.size > 0 && name.split(/[^\p{L}\p{N}_\s-]+/u).some((part) => this.denied.has(plain(part))))
      return true;
    const words = folded(name)
      .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
      .replace(/([A-Z])([A-Z][a-z])/g, '$1 $2')
      .toLowerCase()
      .split(/[^a-z]+/);
    return [flat, ...words].some(
      (word) =>
        SECRET_WORDS.has(word) ||
        SECRET_WORDS.has(word.replace(/s$/, '')) ||
        SECRET_END.test(word) ||
        this.denied.has(word),
    );
  }

  /** Whether a value has the form of a secret. */
  isSecretValue(value: string): boolean {
    if (SECRET_VALUE.test(value) || WITH_CREDENTIALS.test(value)) return true;
    if (value.length < LEAST_LENGTH) return false;
    const text = value.replaceAll(UUIDS, ' ');
    for (const pattern of MAYBE_CARDS) for (const [number] of text.matchAll(pattern)) if (isCard(number)) return true;
    for (const [run] of text.matchAll(RANDOM_RUN)) if (isRandom(run)) return true;
    for (const [run] of text.matchAll(BASE64_RUN)) if (alternates(run)) return true;
    return false;
  }
}
