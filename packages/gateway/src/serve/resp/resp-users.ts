import { createHash, timingSafeEqual } from 'node:crypto'

/** A user of the port, as the rule file describes one. */
export interface RespUserSettings {
  readonly name: string
  readonly password: string
  /** The rules that the user may use; all of them if this is left out. */
  readonly rules?: readonly string[] | undefined
  /** True if the user may bring limits along. */
  readonly throttle: boolean
}

/** The permissions of a client. */
export interface RespUser {
  readonly name: string
  readonly mayThrottle: boolean
  mayUse(rule: string): boolean
}

const everything: RespUser = { name: 'default', mayThrottle: true, mayUse: () => true }

/** The users of a port. Without any, trusted peers need no password. */
export class RespUsers {
  readonly #users: ReadonlyMap<string, { readonly digest: Buffer; readonly user: RespUser }>

  constructor(settings: readonly RespUserSettings[] = [], secretOf: (settings: RespUserSettings) => Buffer) {
    this.#users = new Map(
      settings.map(one => {
        const rules = one.rules && new Set(one.rules)
        const user = { name: one.name, mayThrottle: one.throttle, mayUse: (rule: string) => rules?.has(rule) ?? true }
        return [one.name, { digest: digestOf(secretOf(one)), user }]
      }),
    )
  }

  /** True if clients have to say who they are. */
  get areAsked(): boolean {
    return this.#users.size > 0
  }

  /** The user of a client that has not said who it is. */
  get ofNobody(): RespUser | undefined {
    return this.areAsked ? undefined : everything
  }

  /** Returns the user with this name and password. */
  find(name: string, password: string): RespUser | undefined {
    const found = this.#users.get(name)
    // an unknown name takes as long as a wrong password
    const isRight = timingSafeEqual(digestOf(Buffer.from(password)), found?.digest ?? digestOf(Buffer.alloc(0)))
    return isRight ? found?.user : undefined
  }
}

function digestOf(secret: Buffer): Buffer {
  return createHash('sha256').update(secret).digest()
}
