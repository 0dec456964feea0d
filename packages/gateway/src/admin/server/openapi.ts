import { z } from 'diana-limiter/schema'
import { liveFigures } from '../operations/figures.ts'
import type { Operation } from '../operations/operation.ts'

const problem = z.looseObject({ type: z.string(), title: z.string(), status: z.int(), detail: z.string() })

/** The refusals that any call to the API may get. */
const anyRefusal: Readonly<Record<number, string>> = {
  400: 'the question cannot be read',
  401: 'the token is missing, wrong or expired, and no user is signed in',
  403: 'another origin, an unknown name of this host, or a token or user that may not do this',
  429: 'too many wrong tokens from this address; `Retry-After` says when to try again',
}

/** Returns the OpenAPI document of the admin API, made of the same schemas that read its questions. */
export function openApiOf(operations: readonly Operation[], version: string): object {
  const paths: Record<string, Record<string, object>> = {}
  for (const one of operations) {
    const path = `/api/v1${one.path}`
    paths[path] ??= {}
    paths[path][one.method.toLowerCase()] = { operationId: operationIdOf(one), ...describe(one) }
  }
  paths['/api/v1/live'] = {
    get: {
      operationId: 'getLive',
      summary:
        'Server-sent events: `figures` (the schema LiveFigures) once a second, `status` at the start and when it changed, `rules` when the set changed.',
      responses: {
        200: { description: 'the stream', content: { 'text/event-stream': { schema: { type: 'string' } } } },
        ...refusals({}),
      },
    },
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Diana admin API', version, license: { name: 'MIT', identifier: 'MIT' } },
    servers: [{ url: '/', description: 'the gateway that serves this document' }],
    security: [{ token: [] }, {}],
    paths,
    components: {
      securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
      schemas: { Problem: schemaOf(problem, 'output'), LiveFigures: schemaOf(liveFigures, 'output') },
    },
  }
}

/** Names an operation by its method and path, as in `getCallers` and `deleteBlocksById`, so that the name never changes by itself. */
export function operationIdOf({ method, path }: Operation): string {
  const words = path.split('/').filter(word => word !== '')
  const name = words.map(word => (word === '{id}' ? 'ById' : `${word[0]!.toUpperCase()}${word.slice(1)}`))
  return `${method.toLowerCase()}${name.join('')}`
}

function describe({ path, summary, query, body, answer, refusals: own = {} }: Operation): object {
  const inPath = path.includes('{id}')
    ? [{ name: 'id', in: 'path', required: true, schema: { type: 'string', maxLength: 128 } }]
    : []
  return {
    summary,
    parameters: [...inPath, ...(query ? parametersOf(query) : [])],
    ...(body ? { requestBody: { required: true, content: json(schemaOf(body, 'input')) } } : {}),
    responses: { 200: { description: 'done', content: json(schemaOf(answer, 'output')) }, ...refusals(own) },
  }
}

function parametersOf(query: z.ObjectSchema): object[] {
  const { properties = {}, required = [] } = schemaOf(query, 'input') as {
    properties?: Record<string, object>
    required?: readonly string[]
  }
  return Object.entries(properties).map(([name, schema]) => {
    return { name, in: 'query', required: required.includes(name), schema }
  })
}

function refusals(own: Readonly<Record<number, string>>): Record<string, object> {
  const schema = { $ref: '#/components/schemas/Problem' }
  const all = Object.entries({ ...anyRefusal, ...own })
  return Object.fromEntries(
    all.map(([status, description]) => [status, { description, content: { 'application/problem+json': { schema } } }]),
  )
}

function json(schema: object): object {
  return { 'application/json': { schema } }
}

function schemaOf(shape: z.Schema, io: 'input' | 'output'): object {
  const { $schema: _, ...schema } = z.toJSONSchema(shape, { io })
  return schema
}
