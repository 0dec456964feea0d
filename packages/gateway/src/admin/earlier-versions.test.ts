import { describe, expect, it } from 'vitest'
import { EarlierVersions } from './earlier-versions.ts'

describe('earlier versions of a document', () => {
  it('the newest are kept, by document, and found by their id', () => {
    const versions = new EarlierVersions()
    for (let i = 0; i < 60; i++) versions.add('local', `text ${i}`, i)
    versions.add('remote', 'center', 60)
    expect(versions.of('local').map(({ text }) => text)[0]).toBe('text 59')
    expect(versions.of('local')).toHaveLength(49)
    const [remote] = versions.of('remote')
    expect(versions.find(remote!.id)?.text).toBe('center')
    expect(versions.find('none')).toBeUndefined()
  })

  it('long texts push out earlier ones, and the last one always stays', () => {
    const versions = new EarlierVersions()
    for (let i = 0; i < 12; i++) versions.add('local', 'x'.repeat(1024 * 1024), i)
    expect(versions.of('local')).toHaveLength(8)
    versions.add('local', 'x'.repeat(20 * 1024 * 1024), 99)
    expect(versions.of('local').map(({ at }) => at)).toEqual([99])
  })

  it('each version has the change that replaced it: from where, why, and the first of the rules that changed', () => {
    const versions = new EarlierVersions()
    const rules = Array.from({ length: 30 }, (_, i) => ({ id: `r${i}`, change: 'added' as const }))
    versions.add('local', 'text', 1, { from: '127.0.0.1', who: 'ann', comment: 'launch week', rules })
    const [{ by } = { by: undefined }] = versions.of('local')
    expect(by).toMatchObject({ from: '127.0.0.1', who: 'ann', comment: 'launch week', changed: 30 })
    expect(by?.rules).toHaveLength(20)
  })
})
