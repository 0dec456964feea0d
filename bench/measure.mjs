// One measurement in a process of its own: node --expose-gc measure.mjs TOPIC CASE SUBJECT
const [topic, caseName, subject] = process.argv.slice(2)
const { cases, measure } = await import(`./topics/${topic}.mjs`)
const result = await measure(
  cases.find(({ name }) => name === caseName),
  subject,
)
process.stdout.write(JSON.stringify(result), () => process.exit(0))
