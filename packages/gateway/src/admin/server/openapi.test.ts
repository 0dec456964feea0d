import { describe, expect, it } from 'vitest'
import { operations } from '../operations/index.ts'
import { openApiOf } from './openapi.ts'

interface Described {
  readonly operationId: string
  readonly responses: { readonly 200: { readonly content: Record<string, { readonly schema: object }> } }
}

const { paths } = openApiOf(operations, '1.0.0') as { paths: Record<string, Record<string, Described>> }
const described = Object.values(paths).flatMap(path => Object.values(path))

describe('the OpenAPI document of the admin API', () => {
  it('every operation has an id of its own', () => {
    const ids = described.map(({ operationId }) => operationId)
    expect(ids).toEqual(expect.arrayContaining(['getCallers', 'putRulesById', 'deleteBlocksById', 'getLive']))
    expect(new Set(ids).size).toBe(ids.length)
    expect(ids.filter(id => !/^[a-z][A-Za-z]+$/.test(id))).toEqual([])
  })

  it('every answer has a type', () => {
    for (const { operationId, responses } of described) {
      const [schema] = Object.values(responses[200].content).map(content => content.schema)
      expect([operationId, Object.keys(schema ?? {})]).toEqual([operationId, expect.arrayContaining(['type'])])
    }
  })
})
