import type { Limiter } from 'diana-limiter'
import type { z } from 'diana-limiter/schema'
import type { Audit } from '../audit.ts'
import type { Blocks } from '../blocks.ts'
import type { EarlierVersions } from '../earlier-versions.ts'
import type { Identity, Role } from '../identity/identity.ts'
import type { Live } from '../live.ts'
import type { Processes } from '../processes.ts'

/** Everything that operations work with. */
export interface AdminContext {
  readonly limiter: Limiter
  readonly processes: Processes
  readonly live: Live
  readonly blocks: Blocks
  readonly audit: Audit
  readonly versions: EarlierVersions
  /** The page where users sign out that a proxy has signed in; undefined if there is no such page. */
  readonly logoutUrl?: string | undefined
}

/** A question: parts of the path, the query and the body, each as its schema read it. */
export interface AdminRequest<Query, Body> {
  readonly id: string
  readonly identity: Identity
  /** The address that it came from. */
  readonly from: string
  readonly query: Query
  readonly body: Body
}

/** One thing that the admin API does. */
export interface Operation {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** Below /api/v1; `{id}` is whatever stands there. */
  readonly path: string
  readonly summary: string
  readonly query?: z.ObjectSchema | undefined
  readonly body?: z.Schema | undefined
  readonly answer: z.Schema
  /** The role that may ask; left out, viewers may if it is a GET. */
  readonly role?: Role | undefined
  /**
   * True if this gateway can answer it at all, undefined if that is not known yet; left out, it can. What is not offered is not in the
   * OpenAPI document.
   */
  isOffered?(context: AdminContext): boolean | undefined
  /** The statuses of its own refusals, and when each is given. */
  readonly refusals?: Readonly<Record<number, string>> | undefined
  run(request: AdminRequest<unknown, unknown>, context: AdminContext): unknown
}

/** Makes an operation whose `run` is given its words as its schemas type them. */
export function operation<Query extends z.ObjectSchema, Body extends z.Schema>(one: {
  readonly method: Operation['method']
  readonly path: string
  readonly summary: string
  readonly query?: Query
  readonly body?: Body
  readonly answer: z.Schema
  readonly role?: Role
  isOffered?(context: AdminContext): boolean | undefined
  readonly refusals?: Operation['refusals']
  run(request: AdminRequest<z.output<Query>, z.output<Body>>, context: AdminContext): unknown
}): Operation {
  return one as unknown as Operation
}

/** Returns who may ask for an operation. */
export function roleOf({ method, role }: Operation): Role {
  return role ?? (method === 'GET' ? 'viewer' : 'operator')
}
