import { emptyForm, type Level, type RuleForm, type Unit } from './rule-form.ts'

export const TEMPLATES = ['account', 'login', 'expensive', 'plans', 'quota', 'system'] as const
export type Template = (typeof TEMPLATES)[number]

const level = (count: number, unit: Unit, every = ''): Level => ({ count: String(count), every, unit })

/** The fields that each template fills; every template is a rule that can be used as it is. */
const forms: Readonly<Record<Template, Partial<RuleForm>>> = {
  account: { id: 'per-account', by: ['account'], levels: [level(100, 'm')] },
  login: {
    id: 'login',
    paths: '/login',
    methods: ['POST'],
    by: ['account', 'ip'],
    levels: [level(10, 'm', '15')],
    status: '429',
    countWhen: 'failed',
    resetWhen: 'success',
    block: { kind: 'growing', first: '1m', max: '1d' },
  },
  expensive: {
    id: 'expensive',
    paths: '/search',
    by: ['account'],
    levels: [level(2, 'at-once')],
    algorithm: 'concurrency',
  },
  plans: {
    id: 'by-plan',
    by: ['account'],
    plans: {
      by: 'header:x-plan',
      values: [
        { name: 'free', level: level(100, 'h') },
        { name: 'pro', level: level(5000, 'h') },
      ],
      standard: level(100, 'h'),
    },
  },
  quota: { id: 'monthly-quota', by: ['account'], levels: [level(10_000, 'month')], status: '429' },
  system: { id: 'whole-system', levels: [level(5000, 's')] },
}

/** Returns a filled form, under a name that no rule has. */
export function formOf(template: Template, taken: ReadonlySet<string>, namedDimensions: readonly string[]): RuleForm {
  const form: RuleForm = { ...emptyForm, ...forms[template] }
  // a claim of a verified token is safer than a header, if there are tokens
  const plans = form.plans && namedDimensions.includes('jwt') ? { ...form.plans, by: 'jwt:plan' } : form.plans
  let id = form.id
  for (let count = 2; taken.has(id); count++) id = `${form.id}-${count}`
  return { ...form, id, plans }
}
