import { commentLine, maskCaller } from 'diana-limiter/admin'
import { explain, type z } from 'diana-limiter/schema'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Refusal } from '../../http/refusal.ts'
import type { AuditEntry } from '../audit.ts'
import type { Identity } from '../identity/identity.ts'
import type { SignIn } from '../identity/sign-in.ts'
import { type AdminContext, type Operation, roleOf } from '../operations/operation.ts'
import { operationIdOf } from './openapi.ts'

interface OperationParts extends Pick<SignIn, 'addressOf'> {
  identityIn(request: FastifyRequest): Identity
}

/** Serves one operation: checks the role, reads what was asked, and records what was changed. */
export function addOperation(
  app: FastifyInstance,
  one: Operation,
  context: AdminContext,
  { identityIn, addressOf }: OperationParts,
): void {
  const url = `/api/v1${one.path.replace('{id}', ':id')}`
  const isChange = one.method !== 'GET' && !readOnly.has(one.path)
  app.route<{ Params: { id?: string } }>({
    method: one.method,
    url,
    handler: async (request, reply) => {
      const { params, query, body } = request
      const isOffered = one.isOffered === undefined || one.isOffered(context)
      if (isOffered === undefined) {
        throw new Refusal(503, 'No process that takes calls has reported yet: ask again in a second.')
      }
      if (!isOffered) {
        throw new Refusal(404, `This server cannot answer that: ${one.refusals?.[404] ?? 'it does not know'}.`)
      }
      const identity = identityIn(request)
      const { role, who, via } = identity
      const by = { from: addressOf(request.raw), who, via, role }
      if (role === 'viewer' && roleOf(one) === 'operator') {
        if (isChange) record(one, context, { ...by, subject: params.id ?? '', refused: 'read only' })
        throw new Refusal(403, onlyReads(identity))
      }
      const question = {
        id: params.id ?? '',
        identity,
        from: by.from,
        query: one.query ? read(one.query, query, 'the query') : {},
        body: one.body ? read(one.body, body, 'the body') : undefined,
      }
      const answer = (await one.run(question, context)) as object
      if (isChange) record(one, context, { ...by, subject: subjectOf(question), ...commentOf(question) })
      return reply.send(answer)
    },
  })
}

function record(one: Operation, { audit }: AdminContext, entry: Omit<AuditEntry, 'at' | 'operation'>): void {
  audit.add({ at: Date.now(), operation: operationIdOf(one), ...entry })
}

function onlyReads({ user }: Identity): string {
  return user === undefined
    ? 'This token may only read: sign in with the token of an operator.'
    : `${user} may only read: gateway.admin.identity.roles.operator lists who may change something.`
}

/** Operations that change nothing, though they are asked with a body. */
const readOnly = new Set(['/explain', '/check', '/preview', '/replay', '/draft', '/changes'])

/** Returns what a change was about, without a caller's own name. */
function subjectOf({ id, body }: { readonly id: string; readonly body: unknown }): string {
  const { rule, caller, key, where } = (body ?? {}) as Record<string, unknown>
  const named = typeof key === 'string' ? maskCaller(key) : caller
  return [id === '' ? rule : id, named, where].filter(one => typeof one === 'string').join(' ')
}

/** Returns why a change was made, if its body or its query says so. */
function commentOf({ body, query }: { readonly body: unknown; readonly query: unknown }): { comment?: string } {
  const given = (body as { comment?: unknown } | undefined)?.comment ?? (query as { comment?: unknown }).comment
  const comment = typeof given === 'string' ? commentLine(given) : ''
  return comment === '' ? {} : { comment }
}

function read(shape: z.Schema, value: unknown, what: string): unknown {
  const { data, problems } = explain(shape, value)
  const [problem] = problems
  if (problem === undefined) return data
  const at = problem.path.map(String).join('.')
  throw new Refusal(400, `${at === '' ? what : at} ${problem.what}`.slice(0, 500))
}
