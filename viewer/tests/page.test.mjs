// The page in Chromium by Playwright: pictures of the drawing, compared with those in pictures/.
// tests/programs/viewer_test.py makes the reports and runs this; VIEWER_REPORTS is their folder.
// Words are left out of the pictures, since fonts differ between machines. To take a new picture,
// remove the old one.
import assert from "node:assert/strict";
import {existsSync, mkdirSync, readFileSync, writeFileSync} from "node:fs";
import {after, before, test} from "node:test";
import {pathToFileURL} from "node:url";
import {chromium} from "playwright-core";

const kMostDiffering = 0.02;  // of the pixels
const kPictures = new URL("pictures/", import.meta.url);
const reports = process.env.VIEWER_REPORTS;
let browser;

before(async () => {
  browser = await chromium.launch({executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
                                   args: ["--no-sandbox", "--disable-gpu"]});
});
after(() => browser?.close());

async function open(name, options = {}) {
  const page = await browser.newPage({viewport: {width: 1000, height: 800}, ...options});
  const errors = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  await page.goto(pathToFileURL(`${reports}/${name}/report.html`).href);
  await page.addStyleTag({content: "#picture text, .tip { display: none !important }"});
  assert.deepEqual(errors, []);
  return page;
}

// The part of the pixels that differ.
const difference = (page, known, taken) => page.evaluate(async (pictures) => {
  const pixels = async (data) => {
    const image = new Image();
    image.src = `data:image/png;base64,${data}`;
    await image.decode();
    const canvas = new OffscreenCanvas(image.width, image.height);
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    return context.getImageData(0, 0, image.width, image.height);
  };
  const [a, b] = await Promise.all(pictures.map(pixels));
  if (a.width !== b.width || a.height !== b.height) return 1;
  let count = 0;
  for (let i = 0; i < a.data.length; i += 4)
    if ([0, 1, 2].reduce((sum, c) => sum + Math.abs(a.data[i + c] - b.data[i + c]), 0) > 90) ++count;
  return count / (a.data.length / 4);
}, [known.toString("base64"), taken.toString("base64")]);

async function looksAsKnown(page, name) {
  const taken = await page.locator("#topology").screenshot({animations: "disabled"});
  const file = new URL(`${name}.png`, kPictures);
  if (!existsSync(file)) {
    mkdirSync(kPictures, {recursive: true});
    writeFileSync(file, taken);
  }
  assert.ok(await difference(page, readFileSync(file), taken) <= kMostDiffering, name);
}

test("rails, dark", async () => {
  await looksAsKnown(await open("rails", {colorScheme: "dark"}), "rails_dark");
});

test("a Clos network of 1,000 hosts, on a narrow screen", async () => {
  const page = await open("thousand", {viewport: {width: 700, height: 800}});
  await looksAsKnown(page, "clos_narrow");
});

test("rails by server, with the path of a message", async () => {
  const page = await open("rails");
  await page.getByLabel("Hosts by").selectOption("server");
  await page.locator("#transfers td button").first().click();
  await page.getByLabel("moment of the run").press("ArrowRight");
  await looksAsKnown(page, "rails_by_server");
});
