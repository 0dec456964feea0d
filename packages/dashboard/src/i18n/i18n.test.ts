import { describe, expect, it } from 'vitest'
import {
  causes,
  FAILED_TRANSACTION,
  LOST_COUNTS,
  UNKNOWN_BUG,
  UNREACHABLE,
} from '../../../limiter/src/stores/store-error-causes.ts'
import { en as changesInEnglish } from './changes/en.ts'
import { zh as changesInChinese } from './changes/zh.ts'
import { en } from './en.ts'
import { en as servicesEn } from './services/en.ts'
import { zh as servicesZh } from './services/zh.ts'
import { en as viewsInEnglish } from './views/en.ts'
import { zh as viewsInChinese } from './views/zh.ts'
import { causes as chineseCauses, zh } from './zh.ts'

/** Every word by its path; a sentence with places in it is told with marks in them. */
function flatten(messages: object, path = ''): Map<string, string> {
  const found = new Map<string, string>()
  for (const [name, word] of Object.entries(messages)) {
    const at = path === '' ? name : `${path}.${name}`
    if (typeof word === 'string') found.set(at, word)
    else if (typeof word === 'function') found.set(at, (word as (...marks: string[]) => string)('‹1›', '‹2›'))
    else for (const [inner, text] of flatten(word as object, at)) found.set(inner, text)
  }
  return found
}

const english = flatten({ ...en, ...viewsInEnglish, changes: changesInEnglish, servicesView: servicesEn })
const chinese = flatten({ ...zh, ...viewsInChinese, changes: changesInChinese, servicesView: servicesZh })

describe('the texts of the page', () => {
  it('all texts of the page have a Chinese version', () => {
    expect([...chinese.keys()]).toEqual([...english.keys()])
    expect([...chinese].filter(([, text]) => text.trim() === '')).toEqual([])
  })

  it('all causes of outages have a Chinese version', () => {
    const codes = [...causes, UNREACHABLE, LOST_COUNTS, FAILED_TRANSACTION, UNKNOWN_BUG].map(({ code }) => code)
    expect(Object.keys(chineseCauses).sort()).toEqual(codes.sort())
    const texts = Object.values(chineseCauses).flatMap(({ what, remedy }) => [what, remedy])
    expect(texts.filter(text => !/\p{Script=Han}/u.test(text))).toEqual([])
  })

  it('all Chinese texts of the page contain Chinese characters', () => {
    const sameEverywhere = ['language', 'fleet.store', 'fleet.release', 'rules.limit']
    const left = [...chinese].filter(([at, text]) => !/\p{Script=Han}/u.test(text) && !sameEverywhere.includes(at))
    expect(left).toEqual([])
  })

  it('the texts of the page have the same parameters in both languages', () => {
    const marks = (text: string) => [...new Set(text.match(/‹\d›/g))].sort()
    for (const [at, text] of english) expect([at, marks(chinese.get(at)!)]).toEqual([at, marks(text)])
  })
})
