/** What JSON loggers get. Loggers that look for `message`, or make a text of what they get, find the line for people. */
export class LogObject {
  readonly msg: string;

  constructor(text: string, fields: object) {
    this.msg = text;
    Object.assign(this, fields);
  }

  get message(): string {
    return this.msg;
  }

  toString(): string {
    return this.msg;
  }
}
