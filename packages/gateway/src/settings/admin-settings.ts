import { listOf, textOf, z } from 'diana-limiter/schema'
import { type IdentitySettings, identitySchema } from './identity-settings.ts'
import { hostSchema, portSchema } from './values.ts'

/** The address where operators come in, and what is kept of what they do. */
export interface AdminSettings {
  readonly host?: string | undefined
  readonly port?: number | undefined
  readonly token?: string | undefined
  readonly viewToken?: string | undefined
  readonly hosts?: readonly string[] | undefined
  readonly identity?: IdentitySettings | undefined
  /** A folder for what must survive a restart. */
  readonly state?: string | undefined
  /** A file to which every change is appended; `audit.jsonl` in `state` unless given. */
  readonly audit?: string | undefined
}

const hostName = textOf(text =>
  /^[a-z\d_-]{1,63}(?:\.[a-z\d_-]{1,63})*$/i.test(text)
    ? undefined
    : 'must be a host name such as gateway.example, without a port',
)
const path = z.string().min(1).max(4096)

export const adminSchema: z.Schema<AdminSettings> = z.strictObject({
  host: hostSchema.optional().describe('127.0.0.1 unless given.'),
  port: portSchema.optional().describe('8081 unless given.'),
  token: z.string().min(16).max(1024).optional().describe('Needed outside of this machine, unless identity is given.'),
  viewToken: z.string().min(16).max(1024).optional().describe('A second token, which may only read, and no documents.'),
  hosts: listOf(hostName, { min: 1, max: 100 })
    .optional()
    .describe('Names by which it may be called, besides addresses and localhost.'),
  identity: identitySchema
    .optional()
    .describe('Users that a proxy has signed in, or that the tokens of an issuer name, and what they may do.'),
  state: path
    .optional()
    .describe('A folder, as seen from this file, for blocks by hand, earlier versions and the list of changes.'),
  audit: path
    .optional()
    .describe('A file, as seen from this file, that gets a JSON line for each change; default: audit.jsonl in state.'),
})
