import assert from 'node:assert/strict'
import type { Call } from '../../call.ts'
import type { Dimension } from '../../dimensions/dimension.ts'
import type { SuiteTest } from '../suite-test.ts'

export interface DimensionSuiteOptions {
  readonly dimension: Dimension
  /** Arguments to test it with; default: none. */
  readonly arguments?: readonly string[] | undefined
  /** Calls and the values that they have; at least one with a value. */
  readonly values: readonly { readonly call: Call; readonly argument?: string; readonly value: string | undefined }[]
}

const long = 'x'.repeat(70_000)
const texts = ['', ' ', '\0', long, '%2F', '..', '\ud800', '\u202e', '[object Object]', '__proto__', 'a,b', '"', ';']

/** Calls that callers may send, and that code may create. */
function hostileCalls(): Call[] {
  const bare = { method: 'GET', path: '/' }
  return [
    bare,
    { ...bare, headers: {} },
    { ...bare, headers: Object.create(null) },
    { ...bare, attributes: {} },
    ...texts.map(text => ({ ...bare, path: `/${text}`, query: text, ip: text, host: text, method: text })),
    ...texts.map(text => ({ ...bare, resource: text, attributes: { account: text } })),
    ...texts.map(text => ({ ...bare, headers: { cookie: text, authorization: text, 'x-account-id': text } })),
    { ...bare, headers: { cookie: ['a=1', 'a=2'], 'x-account-id': ['one', 'two'] } as Call['headers'] },
  ]
}

/** Lists the promises of every dimension, as tests for any test runner. */
export function dimensionSuite({ dimension, arguments: given, values }: DimensionSuiteOptions): readonly SuiteTest[] {
  const { name } = dimension
  const args = dimension.argument === 'none' ? [''] : [...(given ?? []), ...texts]
  const cases = (): [Call, string][] => hostileCalls().flatMap(call => args.map((arg): [Call, string] => [call, arg]))
  return [
    {
      name: `${name}: read returns the value of a call`,
      run: async () => {
        assert.ok(
          values.some(({ value }) => value !== undefined),
          'values must have a call that has a value',
        )
        for (const { call, argument = '', value } of values) assert.equal(dimension.read(call, argument), value)
      },
    },
    {
      name: `${name}: read does not throw for hostile calls, and returns text or undefined`,
      run: async () => {
        for (const [call, argument] of cases()) {
          const value: unknown = dimension.read(call, argument)
          assert.ok(value === undefined || typeof value === 'string', `read returned ${String(value)}`)
        }
      },
    },
    {
      name: `${name}: read returns the same value for the same call`,
      run: async () => {
        for (const [call, arg] of cases()) assert.equal(dimension.read(call, arg), dimension.read({ ...call }, arg))
      },
    },
    {
      name: `${name}: readerOf returns what read does`,
      run: async () => {
        for (const [call, arg] of cases()) {
          if (dimension.readerOf) assert.equal(dimension.readerOf(arg)(call), dimension.read(call, arg))
        }
      },
    },
    {
      name: `${name}: ambiguityOf does not throw for hostile calls`,
      run: async () => {
        for (const [call, arg] of cases()) {
          assert.equal(typeof (dimension.ambiguityOf?.(arg)(call) ?? false), 'boolean')
        }
      },
    },
  ]
}
