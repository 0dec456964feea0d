import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { mergeTexts } from './merge-texts.ts'

const old = 'rules:\n  - id: a\n    limit: 1/s\n  - id: b\n    limit: 2/s\n  - id: c\n    limit: 3/s\n'

describe('merging the changes of two people', () => {
  it.each([
    [
      'other lines',
      old.replace('1/s', '9/s'),
      old.replace('3/s', '8/s'),
      old.replace('1/s', '9/s').replace('3/s', '8/s'),
      0,
    ],
    ['the same line alike', old.replace('1/s', '9/s'), old.replace('1/s', '9/s'), old.replace('1/s', '9/s'), 0],
    ['the same line otherwise', old.replace('2/s', '9/s'), old.replace('2/s', '8/s'), old.replace('2/s', '9/s'), 1],
    ['a rule added by each', `${old}  - id: d\n`, `# note\n${old}`, `# note\n${old}  - id: d\n`, 0],
    [
      'a rule taken out',
      old.replace('  - id: b\n    limit: 2/s\n', ''),
      old.replace('3/s', '8/s'),
      old.replace('  - id: b\n    limit: 2/s\n', '').replace('3/s', '8/s'),
      0,
    ],
    ['nothing of mine', old, old.replace('1/s', '7/s'), old.replace('1/s', '7/s'), 0],
  ])('two changes are merged: %s', (_name, mine, theirs, text, conflicts) => {
    expect(mergeTexts(old, mine, theirs)).toEqual({ text, conflicts })
  })

  const someText = fc
    .array(fc.constantFrom('a\n', 'b\n', 'c\n', '  d\n'), { maxLength: 12 })
    .map(lines => lines.join(''))

  it('a side that changed nothing takes the other side, and no change of theirs is lost without a conflict', () => {
    fc.assert(
      fc.property(someText, someText, someText, (base, mine, theirs) => {
        expect(mergeTexts(base, base, theirs)).toEqual({ text: theirs, conflicts: 0 })
        expect(mergeTexts(base, mine, base)).toEqual({ text: mine, conflicts: 0 })
        expect(mergeTexts(base, mine, mine)).toEqual({ text: mine, conflicts: 0 })
        const one = mergeTexts(base, mine, theirs)
        const other = mergeTexts(base, theirs, mine)
        // without conflicts, the order of the sides makes no difference
        if (one.conflicts === 0) expect(other).toEqual(one)
      }),
    )
  })
})
