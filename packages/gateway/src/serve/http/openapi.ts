import { z } from 'diana-limiter/schema'

/** One thing that programs can ask of the decision server. */
export interface ApiOperation {
  readonly path: string
  readonly summary: string
  readonly body: z.Schema
  readonly answer: z.Schema
  /** Runs the operation with the body as its schema has read it. */
  run(body: unknown): Promise<object>
}

const problem = z.looseObject({ type: z.string(), title: z.string(), status: z.int(), detail: z.string() })

const refusals: Readonly<Record<number, string>> = {
  400: 'the question cannot be read',
  403: 'this peer is not trusted: see trustProxy',
  413: 'the body is too large',
  415: 'the body is not JSON',
  503: 'the server is ending',
}

/** Returns the OpenAPI document of these operations, made of the same schemas that read their questions. */
export function describeApi(operations: readonly ApiOperation[], version: string): object {
  const paths = operations.map(({ path, summary, body, answer }) => {
    const responses = {
      200: { description: 'decided', content: json(schemaOf(answer, 'output')) },
      ...Object.fromEntries(Object.entries(refusals).map(([status, description]) => [status, refusal(description)])),
    }
    return [
      path,
      { post: { summary, requestBody: { required: true, content: json(schemaOf(body, 'input')) }, responses } },
    ]
  })
  return {
    openapi: '3.1.0',
    info: { title: 'Diana decision server', version },
    paths: Object.fromEntries(paths),
    components: { schemas: { Problem: schemaOf(problem, 'output') } },
  }
}

function refusal(description: string): object {
  return { description, content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } } }
}

function json(schema: object): object {
  return { 'application/json': { schema } }
}

function schemaOf(shape: z.Schema, io: 'input' | 'output'): object {
  const { $schema: _, ...schema } = z.toJSONSchema(shape, { io })
  return schema
}
