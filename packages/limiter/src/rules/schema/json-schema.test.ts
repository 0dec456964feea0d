import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { expect, it } from 'vitest'
import { parse } from 'yaml'
import { algorithms } from '../../algorithms/index.ts'
import { dimensions } from '../../dimensions/index.ts'
import { sources } from '../../sources/index.ts'
import { ruleFileSchema } from './json-schema.ts'

// fastify brings it
const { Ajv2020 } = createRequire(import.meta.url)('ajv/dist/2020')
const schema = ruleFileSchema({ algorithms, dimensions, sources })
const validate = new Ajv2020({ strictTypes: false }).compile(schema)
const folder = new URL('../../../../../test/rules/', import.meta.url)
const rule = (options: object) => ({ rules: [{ id: 'sms', limit: '5/s', ...options }] })

it.each(readdirSync(new URL('good/', folder)))('good/%s is valid', file => {
  validate(parse(readFileSync(new URL(`good/${file}`, folder), 'utf8')))
  expect(validate.errors).toBeNull()
})

it.each([
  ['no rules', {}],
  ['an unknown word', { ...rule({}), trustproxy: 1 }],
  ['an unknown word of a rule', rule({ whenFul: 'wait' })],
  ['a word of another algorithm', rule({ burst: 5 })],
  ['an unknown algorithm', rule({ algorithm: 'tokenbucket' })],
  ['a rate for a count', rule({ algorithm: 'concurrency' })],
  ['a count for a rate', rule({ limit: 5 })],
  ['a limit with spaces', rule({ limit: '5 / s' })],
  ['a duration without unit', rule({ whenFull: 'wait', queue: { timeout: 5 } })],
  ['a status out of range', { ...rule({}), answer: { status: 200 } }],
])('%s is not valid', (_, document) => {
  expect(validate(document)).toBe(false)
})

it('the JSON schema describes every option', () => {
  const described = JSON.stringify(schema)
  for (const word of ['How calls are counted.', 'What a refused caller gets.', 'How many calls may wait.']) {
    expect(described).toContain(word)
  }
  expect(schema).toMatchObject({ $schema: 'https://json-schema.org/draft/2020-12/schema' })
})
