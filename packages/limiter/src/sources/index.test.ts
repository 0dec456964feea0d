import { describe, expect, it } from 'vitest'
import { shapeOf } from '../rules/schema/option-shape.ts'
import * as z from '../shapes/index.ts'
import { sources } from './index.ts'

const kinds = sources.map(({ options, ...kind }) => ({ ...kind, options: shapeOf(options) }))

describe('the list of sources', () => {
  it('the list of sources names each kind as the rule file does', () => {
    const names = ['file', 'http', 'redis', 'etcd', 'nacos', 'consul', 'apollo']
    expect(sources.map(({ name }) => name)).toEqual(names)
  })

  it.each(kinds)('the options of $name are described by a JSON Schema', ({ name, options }) => {
    const schema = z.toJSONSchema(z.strictObject({ [name]: z.string(), ...options }), { io: 'input' })
    expect(Object.keys(schema.properties ?? {})).toEqual([name, ...Object.keys(options)])
  })

  it.each(kinds)('a wrong secret of $name is not shown', ({ options }) => {
    const secrets = { password: 123456, token: 123456, headers: { 'x-key': 123456 } }
    const wrong = Object.entries(secrets).filter(([word]) => word in options)
    const { error } = z.object(options).safeParse(Object.fromEntries(wrong))
    const messages = error?.issues.map(({ path, message }) => `${String(path[0])} ${message}`) ?? []
    for (const [word] of wrong) expect(messages).toContain(`${word} must be text: write it in quotes`)
    expect(messages.join()).not.toContain('123456')
  })

  it.each(kinds)('$name opens nothing before it is watched', ({ create, options, name }) => {
    const values = { key: 'a', dataId: 'a', appId: 'a' }
    const own = Object.fromEntries(Object.entries(values).filter(([word]) => word in options))
    const address = name === 'redis' ? 'redis://user:hunter2@127.0.0.1:1' : 'http://user:hunter2@127.0.0.1:1'
    const before = process.getActiveResourcesInfo().length
    const source = create(address, z.strictObject(options).parse(own))
    expect(process.getActiveResourcesInfo()).toHaveLength(before)
    expect(source.name.startsWith(name)).toBe(true)
    if (name !== 'file') expect(source.name).not.toContain('hunter2')
  })
})
